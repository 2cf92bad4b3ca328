//! Compiles `src/libtorch/extras.cpp` against the PyTorch that the feature `torch` is built on.

fn main() {
    println!("cargo:rerun-if-changed=src/libtorch/extras.cpp");
    println!("cargo:rerun-if-env-changed=CUDA_HOME");
    #[cfg(feature = "torch")]
    extras::compile();
}

#[cfg(feature = "torch")]
mod extras {
    use std::env;
    use std::path::{Path, PathBuf};

    pub fn compile() {
        // What torch-sys says of the LibTorch that it found.
        let libraries = PathBuf::from(env::var("DEP_TCH_LIBTORCH_LIB").expect("torch-sys names LibTorch's folder"));
        let torch = libraries.parent().expect("LibTorch's libraries lie in a folder of LibTorch's");
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").warnings(false).file("src/libtorch/extras.cpp");
        build.include(torch.join("include")).include(torch.join("include/torch/csrc/api/include"));
        // Without them, all is there but recorded steps.
        if libraries.join("libtorch_cuda.so").exists() {
            match cuda_headers(torch) {
                Some(headers) => {
                    build.include(headers).define("PUDICA_CUDA", None);
                    println!("cargo:rustc-link-lib=torch_cuda");
                    println!("cargo:rustc-link-lib=c10_cuda");
                }
                None => println!(
                    "cargo:warning=CUDA's headers are missing, so steps on a GPU will not be recorded and are slower: \
                     `pip install nvidia-cuda-crt==13.0.*` beside PyTorch, or set CUDA_HOME"
                ),
            }
        }
        println!("cargo:rustc-link-search=native={}", libraries.display());
        build.compile("pudica_libtorch_extras");
    }

    /// The folder of CUDA's headers: where pip put them, or CUDA's own.
    fn cuda_headers(torch: &Path) -> Option<PathBuf> {
        let beside = torch.parent().and_then(|packages| packages.join("nvidia").read_dir().ok());
        let versions = beside.into_iter().flatten().flatten().map(|version| version.path());
        let own = env::var_os("CUDA_HOME").map(PathBuf::from).into_iter().chain([PathBuf::from("/usr/local/cuda")]);
        let mut candidates = versions.chain(own).map(|root| root.join("include"));
        // PyTorch brings the first of the two along, a package of its own has the second.
        candidates
            .find(|headers| ["cuda_runtime_api.h", "crt/host_config.h"].iter().all(|name| headers.join(name).exists()))
    }
}
