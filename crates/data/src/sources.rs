//! Where data sets are published, and which files make them: what `pudica data fetch` downloads.

use crate::Split;
use crate::corruptions::Corruption;
use crate::images::DataSet;
use pudica_boolean::did_you_mean;

/// A data set that can be downloaded.
#[derive(Debug, Clone)]
pub struct Source {
    /// How the command line calls it.
    pub name: &'static str,
    /// The folder inside a data folder where its files belong.
    pub folder: &'static str,
    /// What is downloaded.
    pub downloads: Vec<Download>,
}

/// A file that is downloaded.
#[derive(Debug, Clone)]
pub struct Download {
    /// Its name in the folder.
    pub name: String,
    /// Where it is published; a later place is tried where an earlier one fails.
    pub urls: Vec<String>,
    /// MD5 of its content, unpacked if it is gzipped, where known.
    pub md5: Option<&'static str>,
    /// Empty for a file that is wanted itself; for an archive, the files wanted out of it.
    pub members: Vec<Member>,
}

/// A file in an archive.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name, without the folders of the archive.
    pub name: String,
    /// MD5 of its content, where published.
    pub md5: Option<&'static str>,
}

/// The names of all sources.
pub const SOURCES: [&str; 7] = ["mnist", "fashion-mnist", "cifar10", "svhn", "cifar10-c", "mrpc", "bpe"];

/// Data sets that have no stable direct address with a published checksum, and where to get them.
const ELSEWHERE: [(&str, &str); 2] = [
    (
        "qqp",
        "gluebenchmark.com/tasks lists \"Quora Question Pairs\" (QQP-clean.zip); put its train.tsv and dev.tsv into DIR/qqp",
    ),
    (
        "sst2",
        "gluebenchmark.com/tasks lists \"The Stanford Sentiment Treebank\" (SST-2.zip); put its train.tsv and dev.tsv into DIR/sst2",
    ),
];

impl Source {
    /// The source of this name.
    pub fn named(name: &str) -> Result<Self, String> {
        let from = |bases: &[&str], suffix: &str| from_catalogue(name, bases, suffix);
        match name {
            "mnist" => from(
                &[
                    "https://ossci-datasets.s3.amazonaws.com/mnist/",
                    "https://storage.googleapis.com/cvdf-datasets/mnist/",
                ],
                ".gz",
            ),
            "fashion-mnist" => from(&["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"], ".gz"),
            "svhn" => from(&["http://ufldl.stanford.edu/housenumbers/"], ""),
            "cifar10" => cifar10(),
            "cifar10-c" => Ok(cifar10_c()),
            "mrpc" => Ok(mrpc()),
            "bpe" => Ok(bpe()),
            _ => Err(match ELSEWHERE.iter().find(|(known, _)| *known == name) {
                Some((_, place)) => format!("{name} cannot be downloaded by itself: {place}"),
                None => format!(
                    "no data set called '{name}' can be downloaded{}; known: {}",
                    did_you_mean(name, SOURCES),
                    SOURCES.join(", ")
                ),
            }),
        }
    }
}

/// A set of the catalogue whose files are published one by one, under the address of a folder.
fn from_catalogue(name: &str, bases: &[&str], suffix: &str) -> Result<Source, String> {
    let set = DataSet::named(name)?;
    let download = |(file, md5): (&'static str, &'static str)| {
        let name = format!("{file}{suffix}");
        Download { urls: under(bases, &name), name, md5: Some(md5), members: Vec::new() }
    };
    let files = Split::ALL.into_iter().flat_map(|split| set.published_files(split));
    Ok(Source { name: set.name, folder: set.folder(), downloads: files.map(download).collect() })
}

fn under(bases: &[&str], name: &str) -> Vec<String> {
    bases.iter().map(|base| format!("{base}{name}")).collect()
}

fn cifar10() -> Result<Source, String> {
    let set = DataSet::named("cifar10")?;
    let files = Split::ALL.into_iter().flat_map(|split| set.published_files(split));
    let members = files.map(|(name, md5)| Member { name: name.to_string(), md5: Some(md5) }).collect();
    let archive = Download {
        name: "cifar-10-binary.tar.gz".to_string(),
        urls: vec!["https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz".to_string()],
        md5: None, // published is that of the packed archive; its files have their own
        members,
    };
    Ok(Source { name: "cifar10", folder: set.folder(), downloads: vec![archive] })
}

/// The official corrupted images, and the checksum Zenodo gives for their archive.
fn cifar10_c() -> Source {
    let member = |name: &str| Member { name: format!("{name}.npy"), md5: None };
    let members = Corruption::ALL.iter().map(|(_, name)| member(name)).chain([member("labels")]).collect();
    let archive = Download {
        name: "CIFAR-10-C.tar".to_string(),
        urls: vec!["https://zenodo.org/records/2535967/files/CIFAR-10-C.tar?download=1".to_string()],
        md5: Some("56bf5dcef84df0e2308c6dcbcbbd8499"),
        members,
    };
    Source { name: "cifar10-c", folder: "cifar10-c", downloads: vec![archive] }
}

/// The master files of the paraphrase corpus, as GLUE's own script takes them from SentEval.
fn mrpc() -> Source {
    let file = |name: &str, md5| Download {
        name: name.to_string(),
        urls: under(&["https://dl.fbaipublicfiles.com/senteval/senteval_data/"], name),
        md5: Some(md5),
        members: Vec::new(),
    };
    let downloads = vec![
        file("msr_paraphrase_train.txt", "793daf7b6224281e75fe61c1f80afe35"),
        file("msr_paraphrase_test.txt", "e437fdddb92535b820fe8852e2df8a49"),
    ];
    Source { name: "mrpc", folder: "mrpc", downloads }
}

/// GPT-2's and RoBERTa's byte-level tokens.
fn bpe() -> Source {
    const FAIRSEQ: &str = "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe/";
    let file = |name: &str, url: String, md5| Download {
        name: name.to_string(),
        urls: vec![url],
        md5: Some(md5),
        members: Vec::new(),
    };
    let downloads = vec![
        file("encoder.json", format!("{FAIRSEQ}encoder.json"), "dffec25a898b1f5e569bec4dffd7e5c0"),
        file("vocab.bpe", format!("{FAIRSEQ}vocab.bpe"), "75a37753dd7a28a2c5df80c28bf06e4e"),
        file(
            "roberta_vocab.json",
            "https://huggingface.co/FacebookAI/roberta-base/resolve/main/vocab.json".to_string(),
            "ae624417bd6052f85847a28e07d13467",
        ),
    ];
    Source { name: "bpe", folder: "bpe", downloads }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_says_where_its_files_are_and_how_to_know_them() {
        for name in SOURCES {
            let source = Source::named(name).unwrap();
            assert_eq!(source.name, name);
            assert!(!source.downloads.is_empty() && !source.folder.is_empty());
            for download in source.downloads {
                assert!(download.urls.iter().all(|url| url.starts_with("http")) && !download.urls.is_empty());
                let known = download.md5.is_some() || download.members.iter().all(|member| member.md5.is_some());
                assert!(known, "{name}: {} cannot be checked", download.name);
                assert!(download.md5.is_none_or(|md5| md5.len() == 32));
            }
        }
        assert_eq!(Source::named("mnist").unwrap().downloads.len(), 4);
        assert_eq!(Source::named("cifar10-c").unwrap().downloads[0].members.len(), 20);
    }

    #[test]
    fn unknown_names_get_a_suggestion_and_others_a_place() {
        assert!(Source::named("mnsit").unwrap_err().contains("did you mean 'mnist'?"));
        assert!(Source::named("qqp").unwrap_err().contains("gluebenchmark.com"));
    }
}
