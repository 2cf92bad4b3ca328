//! Tells the program which commit it is built from, where that is known, and whether it is a build that optimises little.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_string())
}

fn main() {
    let commit = git(&["rev-parse", "--short=9", "HEAD"]).map_or(String::new(), |commit| format!(" ({commit})"));
    println!("cargo:rustc-env=PUDICA_COMMIT={commit}");
    println!("cargo:rustc-check-cfg=cfg(fast_build)");
    if std::env::var("OPT_LEVEL").is_ok_and(|level| level == "0") {
        println!("cargo:rustc-cfg=fast_build"); // of the profiles in Cargo.toml only that one leaves this crate so
    }
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| std::path::Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}
