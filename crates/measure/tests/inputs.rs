//! Inputs of every kind, from files as others write them.

#[path = "../../data/tests/image_files/mod.rs"]
mod image_files;

use image_files::{cifar, png};
use pudica_boolean::npy::Type;
use pudica_data::images::{Images, Shape};
use pudica_measure::{Held, InputSet, InputsRequest, Labelled};
use pudica_model::{Image, Input, Takes};
use pudica_probe::{InputKind, Sequence};
use std::fs;
use std::path::{Path, PathBuf};

const ANY_IMAGE: Takes = Takes::Images { channels: None, height: None, width: None };

fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn request(source: impl AsRef<Path>) -> InputsRequest {
    InputsRequest { source: source.as_ref().to_string_lossy().into_owned(), ..InputsRequest::default() }
}

fn open(source: impl AsRef<Path>, takes: &Takes) -> InputSet {
    InputSet::open(&request(source), takes).unwrap()
}

fn refused(request: &InputsRequest, takes: &Takes) -> String {
    InputSet::open(request, takes).err().expect("it is refused").to_string()
}

fn images(takes: [Option<usize>; 3]) -> Takes {
    Takes::Images { channels: takes[0], height: takes[1], width: takes[2] }
}

fn image(labelled: Labelled) -> Image {
    match labelled.input {
        Input::Image(image) => image,
        other => panic!("{other:?}"),
    }
}

/// A picture all of one colour.
fn plain(height: usize, width: usize, colour: &[u8]) -> Vec<u8> {
    png(Shape { height, width, channels: colour.len() }, &colour.repeat(height * width))
}

fn write(path: PathBuf, bytes: impl AsRef<[u8]>) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn folders_of_classes_are_numbered_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root.join("b/2.png"), plain(6, 8, &[255, 0, 51]));
    write(root.join("b/1.png"), plain(6, 8, &[102]));
    write(root.join("a/z.png"), plain(6, 8, &[0, 0, 0]));
    fs::create_dir(root.join("empty")).unwrap();
    write(root.join("a/notes.txt"), "no picture");
    let set = open(root, &ANY_IMAGE);
    let about = set.about();
    assert_eq!((about.kind, about.count, about.available), (InputKind::Images, 3, 3));
    assert_eq!((&about.shape[..], &about.classes[..]), (&[3, 6, 8][..], &["a", "b", "empty"].map(String::from)[..]));
    assert_eq!([0, 1, 2].map(|index| set.name(index)), ["a/z.png", "b/1.png", "b/2.png"]);
    assert_eq!([0, 1, 2].map(|index| set.read(index).unwrap().label), [Some(0), Some(1), Some(1)]);
    let last = image(set.read(2).unwrap());
    assert_eq!([last.values[0], last.values[48], last.values[2 * 48 + 47]], [1.0, 0.0, 0.2]);
    assert!(set.read(3).is_err());
    let names = ["B", "c", "empty", "A"].map(String::from).to_vec();
    let named = InputSet::open(&InputsRequest { class_names: names.clone(), ..request(root) }, &ANY_IMAGE).unwrap();
    assert_eq!((&named.about().classes, named.read(0).unwrap().label), (&names, Some(3)), "as the model calls them");
    assert_ne!(named.about().digest, about.digest);
    // As the model takes them, then as the user says.
    let grey = image(open(root, &images([Some(1), Some(4), Some(4)])).read(1).unwrap());
    assert_eq!((grey.shape, &grey.values[..]), ([1, 4, 4], &[0.4; 16][..]));
    let sized = InputSet::open(&InputsRequest { size: Some(5), ..request(root) }, &ANY_IMAGE).unwrap();
    assert_eq!(sized.about().shape, [3, 5, 5]);
    assert_ne!(sized.about().digest, about.digest);

    write(root.join("a/y.png"), plain(6, 9, &[0, 0, 0]));
    let problem = refused(&request(root), &ANY_IMAGE);
    assert!(problem.contains("a/z.png") && problem.contains("6 x 8") && problem.contains("--size"), "{problem}");
    write(root.join("loose.png"), plain(6, 8, &[0]));
    assert!(refused(&request(root), &ANY_IMAGE).contains("which are meant"));
}

#[test]
fn folders_without_classes_single_pictures_and_many_classes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for index in 0..300 {
        write(root.join(format!("many/{index:03}/a.png")), plain(2, 2, &[index as u8]));
    }
    let many = open(root.join("many"), &ANY_IMAGE);
    assert_eq!((many.about().classes.len(), many.read(299).unwrap().label), (300, Some(299)));
    for index in 0..5 {
        write(root.join(format!("loose/{index}.png")), plain(2, 3, &[index]));
    }
    let loose = open(root.join("loose"), &ANY_IMAGE);
    assert_eq!((loose.about().count, loose.about().classes.len()), (5, 0));
    assert_eq!(loose.read(4).unwrap().label, None);
    // No labels, whatever the model calls its classes.
    let named = InputsRequest { class_names: vec!["cat".into(), "dog".into()], ..request(root.join("loose")) };
    assert!(InputSet::open(&named, &ANY_IMAGE).unwrap().about().classes.is_empty());
    let one = open(root.join("loose/3.png"), &ANY_IMAGE);
    assert_eq!(
        (one.about().count, one.name(0), image(one.read(0).unwrap()).values[0]),
        (1, "3.png".into(), 3.0 / 255.0)
    );

    write(root.join("parts/test/cat/a.png"), plain(2, 2, &[1]));
    let deeper = refused(&request(root.join("parts")), &ANY_IMAGE);
    assert!(deeper.contains("name one part") && deeper.contains("parts/test"), "{deeper}");
    write(root.join("loose/x.gif"), "GIF89a");
    assert!(refused(&request(root.join("loose")), &ANY_IMAGE).contains("x.gif: is a picture of a kind not read here"));
    write(root.join("broken/a.png"), &plain(9, 9, &[1, 2, 3])[..20]);
    assert!(refused(&request(root.join("broken")), &ANY_IMAGE).contains("a.png: not a PNG that can be read"));
}

#[test]
fn a_sample_is_drawn_by_its_seed_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for index in 0..50 {
        write(folder.path().join(format!("{index:02}.png")), plain(1, 1, &[index]));
    }
    let drawn = |sample, seed| {
        let request = InputsRequest { sample: Some(sample), seed, ..request(folder.path()) };
        let set = InputSet::open(&request, &ANY_IMAGE).unwrap();
        let names: Vec<String> = (0..set.about().count).map(|index| set.name(index)).collect();
        (names, set.about().digest.clone(), set.about().available)
    };
    let (names, digest, available) = drawn(10, 0);
    assert_eq!((names.len(), available), (10, 50));
    assert!(names.is_sorted());
    assert_eq!(drawn(10, 0), (names.clone(), digest.clone(), 50));
    assert_ne!(drawn(10, 1).0, names);
    // What is not drawn is not looked at, so it does not matter.
    let other = (0..50).map(|index| format!("{index:02}.png")).find(|name| !names.contains(name)).unwrap();
    write(folder.path().join(other), plain(1, 1, &[200]));
    assert_eq!(drawn(10, 0).1, digest);
    write(folder.path().join(&names[0]), plain(1, 1, &[200]));
    assert_ne!(drawn(10, 0).1, digest);
    let none = InputsRequest { sample: Some(0), ..request(folder.path()) };
    assert!(refused(&none, &ANY_IMAGE).contains("at least one"));
}

/// What `fixtures/arrays.py` wrote with NumPy.
#[test]
fn arrays_as_numpy_writes_them() {
    let plain = open(fixture("plain.npz"), &ANY_IMAGE);
    let about = plain.about();
    assert_eq!((about.kind, &about.shape[..], about.count), (InputKind::Images, &[3, 2, 4][..], 3));
    assert_eq!((about.classes.len(), about.notes.len()), (3, 0));
    assert_eq!([0, 1, 2].map(|index| plain.read(index).unwrap().label), [Some(2), Some(0), Some(1)]);
    // x[1, 1, 2, 0] is 24 + 12 + 6: channels came last.
    let second = image(plain.read(1).unwrap());
    assert_eq!((second.shape, second.values[4 + 2], second.values[2 * 8 + 4 + 2]), ([3, 2, 4], 42.0 / 8.0, 44.0 / 8.0));

    let packed = open(fixture("packed.npz"), &ANY_IMAGE);
    assert_eq!((&packed.about().shape[..], packed.about().classes.len()), (&[3, 4, 5][..], 8));
    let notes = packed.about().notes.join(" ");
    assert!(notes.contains("the first, images, is taken") && notes.contains("of is taken as the labels"), "{notes}");
    let second = image(packed.read(1).unwrap());
    assert_eq!((second.values[0], second.values[59]), (60.0 / 255.0, 119.0 / 255.0));
    assert_eq!(packed.name(1), "1");
    // Bytes are pictures: they are resized and made grey.
    let small = open(fixture("packed.npz"), &images([Some(1), Some(2), Some(2)]));
    assert_eq!(small.about().shape, [1, 2, 2]);

    let half = open(fixture("half.npy"), &Takes::Rows { width: Some(2) });
    assert_eq!((half.about().kind, &half.about().columns[..]), (InputKind::Numbers, &["0", "1"].map(String::from)[..]));
    assert_eq!(half.read(0).unwrap().input, Input::Row(vec![0.333_251_95, -2.0]));
    assert_eq!(half.column(1), [-2.0, 65504.0]);
    assert!(refused(&request(fixture("half.npy")), &Takes::Rows { width: Some(3) }).contains("the model takes 3"));

    let tokens = open(fixture("tokens.npy"), &Takes::Tokens { length: None, vocabulary: None });
    assert_eq!((tokens.about().kind, &tokens.about().shape[..]), (InputKind::Tokens, &[3][..]));
    assert_eq!(tokens.read(0).unwrap().input, Input::Tokens(Sequence { ids: vec![5, 0, 256], touch: None }));
    let small = open(fixture("tokens.npy"), &Takes::Tokens { length: None, vocabulary: Some(256) });
    assert!(small.read(0).unwrap_err().to_string().contains("row 0, token 2 is 256, not 0 to 255"));
    let rows = open(fixture("tokens.npy"), &Takes::Rows { width: None });
    assert_eq!(rows.read(0).unwrap().input, Input::Row(vec![5.0, 0.0, 256.0]));
}

/// A `.npy` file.
fn npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), bytes].concat()
}

#[test]
fn what_is_wrong_with_arrays_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let x = folder.path().join("x.npy");
    let y = folder.path().join("y.npy");
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let cases: [(Vec<u8>, &str); 8] = [
        (npy("<f4", "2, 2", &floats(&[1.0, 2.0, 3.0])), "12 bytes of values follow the header"),
        (npy("<f4", "2, 2", &floats(&[1.0, 2.0, f32::NAN, 0.0])), "row 1, value 0 is not a finite number"),
        (npy("<f4", "99999999999, 99999999", &[]), "more than any file"),
        (npy("<f4", "0, 3", &[]), "is empty"),
        (npy("<f4", "4", &floats(&[1.0; 4])), "images are [channels, height, width]"),
        (npy("<f4", "1, 2, 2, 2", &floats(&[1.0; 8])), "no axis of 1 or 3 channels"),
        (npy("<f4", "", &floats(&[1.0])), "a single number"),
        (b"\x93NUMPY\x01".to_vec(), "cut short"),
    ];
    for (bytes, expected) in cases {
        fs::write(&x, bytes).unwrap();
        let problem = refused(&request(&x), &Takes::Anything);
        assert!(problem.contains("x.npy: ") && problem.contains(expected), "{problem}");
    }
    fs::write(&x, npy("<f4", "2, 1", &floats(&[1.0, 2.0]))).unwrap();
    let labelled = InputsRequest { labels: Some(y.clone()), ..request(&x) };
    let cases: [(Vec<u8>, &str); 4] = [
        (npy("<f4", "2", &floats(&[1.0, 0.0])), "save them as integers"),
        (npy("|i1", "2", &[1, 255]), "label 1 is -1"),
        (npy("|u1", "3", &[1, 0, 1]), "3 labels, but"),
        (npy("|u1", "2, 2", &[1, 0, 0, 1]), "one number is needed"),
    ];
    for (bytes, expected) in cases {
        fs::write(&y, bytes).unwrap();
        let problem = refused(&labelled, &Takes::Anything);
        assert!(problem.contains("y.npy: ") && problem.contains(expected), "{problem}");
    }
    fs::write(&y, npy("<u4", "2, 1", &[3, 0, 0, 0, 1, 0, 0, 0])).unwrap();
    let set = InputSet::open(&labelled, &Takes::Anything).unwrap();
    assert_eq!((set.read(0).unwrap().label, set.about().classes.len()), (Some(3), 4));
    let sized = InputsRequest { size: Some(8), ..request(&x) };
    assert!(refused(&sized, &Takes::Anything).contains("--size 8 is for pictures"));
    fs::write(folder.path().join("z.npz"), b"PK\x03\x04 and nothing").unwrap();
    assert!(refused(&request(folder.path().join("z.npz")), &Takes::Anything).contains("z.npz: not a .npz file"));
    fs::write(&x, npy("|b1", "1, 3", &[1, 0, 1])).unwrap();
    assert_eq!(open(&x, &Takes::Rows { width: None }).read(0).unwrap().input, Input::Bits(vec![1, 0, 1]));
}

/// What is held in memory is read as a file of it is.
#[test]
fn held_arrays_and_texts() {
    let folder = tempfile::tempdir().unwrap();
    let (x, y) = (folder.path().join("x.npy"), folder.path().join("y.npy"));
    let values: Vec<u8> = (0..3 * 4 * 5 * 3).map(|at| (at * 7 % 256) as u8).collect();
    fs::write(&x, npy("|u1", "3, 4, 5, 3", &values)).unwrap();
    fs::write(&y, npy("|u1", "3", &[2, 0, 1])).unwrap();
    let asked = InputsRequest { labels: Some(y), sample: Some(2), seed: 3, ..request(&x) };
    let file = InputSet::open(&asked, &ANY_IMAGE).unwrap();
    let array = || Held::Array { dtype: Type::U8, shape: vec![3, 4, 5, 3], bytes: values.clone() };
    let held = InputSet::of(array(), Some(vec![2, 0, 1]), &InputsRequest { labels: None, ..asked.clone() }, &ANY_IMAGE);
    let held = held.unwrap();
    for index in 0..2 {
        assert_eq!((held.read(index).unwrap(), held.name(index)), (file.read(index).unwrap(), file.name(index)));
    }
    assert_eq!((held.about().shape.clone(), held.about().classes.len()), (vec![3, 4, 5], 3));
    let other = InputSet::of(array(), Some(vec![2, 0, 0]), &request("x"), &ANY_IMAGE).unwrap();
    assert_ne!(held.about().digest, other.about().digest);

    let texts = |count: usize| Held::Texts(vec![("a b".into(), Some("c".into())); count]);
    let named = InputsRequest { class_names: vec!["no".into(), "yes".into()], ..request("texts") };
    let held = InputSet::of(texts(2), Some(vec![0, 1]), &named, &Takes::Anything).unwrap();
    assert_eq!((held.about().kind, held.about().classes.clone()), (InputKind::Texts, named.class_names.clone()));
    let expected = Labelled { input: Input::Text("a b".into(), Some("c".into())), label: Some(1) };
    assert_eq!(held.read(1).unwrap(), expected);
    let refused = |held: Held, labels: Option<Vec<usize>>| {
        InputSet::of(held, labels, &named, &Takes::Anything).err().expect("it is refused").to_string()
    };
    assert!(refused(texts(2), Some(vec![1])).contains("1 labels for 2 inputs"));
    assert!(refused(texts(0), None).contains("there is no text"));
    let empty = Held::Array { dtype: Type::F32, shape: vec![0, 3], bytes: Vec::new() };
    assert!(refused(empty, None).contains("is empty"));
    let short = Held::Array { dtype: Type::F32, shape: vec![2, 3], bytes: vec![0; 8] };
    assert!(refused(short, None).contains("8 bytes of values"));
}

#[test]
fn the_catalogue_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { height: 32, width: 32, channels: 3 };
    let pixels: Vec<u8> = (0..4 * shape.pixels()).map(|at| (at % 251) as u8).collect();
    let four = Images::new(shape, pixels, vec![3, 9, 0, 1]).unwrap();
    write(folder.path().join("cifar10/test_batch.bin"), cifar(&four));
    write(folder.path().join("sst2/dev.tsv"), "sentence\tlabel\na fine film\t1\ndull\t0\n");
    let from = |source: &str| InputsRequest { data: Some(folder.path().into()), ..request(source) };
    let set = InputSet::open(&from("cifar10"), &images([Some(3), Some(32), Some(32)])).unwrap();
    assert_eq!((set.about().count, set.about().classes[9].as_str(), set.read(1).unwrap().label), (4, "truck", Some(9)));
    assert!(set.about().notes[0].contains("4 of the 10000 test inputs of cifar10"), "{:?}", set.about().notes);
    let second = image(set.read(1).unwrap());
    let byte = |at: usize| f32::from(four.image(1)[at]) / 255.0;
    assert_eq!((second.values[0], second.values[1], second.values[1024]), (byte(0), byte(3), byte(1)));
    let some = InputSet::open(&InputsRequest { sample: Some(2), ..from("cifar10:test") }, &ANY_IMAGE).unwrap();
    let row: usize = some.name(1).parse().unwrap();
    assert_eq!(some.read(1).unwrap(), set.read(row).unwrap());

    let texts = InputSet::open(&from("sst2"), &Takes::Texts).unwrap();
    assert_eq!(texts.read(0).unwrap(), Labelled { input: Input::Text("a fine film".into(), None), label: Some(1) });
    assert!(refused(&from("cifar10:dev"), &ANY_IMAGE).contains("the parts train and test"));
    assert!(refused(&from("cifar10:train"), &ANY_IMAGE).contains("no train images of cifar10"));
    assert!(refused(&request("cifar10"), &ANY_IMAGE).contains("--data DIR"));
    assert!(refused(&from("cifar"), &ANY_IMAGE).contains("did you mean 'cifar10'"));
    assert!(
        refused(&InputsRequest { label: Some("x".into()), ..from("sst2") }, &Takes::Texts)
            .contains("--label says nothing")
    );
}

#[test]
fn tables_of_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path().join("t.csv"),
        "name,width,height,kind\none,1,10,wet\n\"two, too\",2,-30,dry\nthree,4.5,1e1,wet\n",
    );
    let labelled = InputsRequest { label: Some("kind".into()), ..request(&file) };
    let set = InputSet::open(&labelled, &Takes::Rows { width: Some(2) }).unwrap();
    let about = set.about();
    assert_eq!((about.kind, &about.columns[..]), (InputKind::Numbers, &["width", "height"].map(String::from)[..]));
    assert_eq!(about.classes, ["dry", "wet"]);
    assert_eq!(set.read(1).unwrap(), Labelled { input: Input::Row(vec![2.0, -30.0]), label: Some(0) });
    assert_eq!((set.column(0), set.name(2)), (&[1.0, 2.0, 4.5][..], "line 4".into()));
    // statistics.stdev of [1, 2, 4.5] and of [10, -30, 10].
    assert!(
        (about.spread[0] - 1.8027756377319946).abs() < 1e-12 && (about.spread[1] - 23.094010767585033).abs() < 1e-12
    );
    assert!(
        about.notes[0].contains("0 is dry, 1 is wet.") && about.notes[1].contains("left out: name."),
        "{:?}",
        about.notes
    );
    let images = refused(&request(&file), &ANY_IMAGE);
    assert!(images.contains("these inputs are numbers, but the model takes images of any"), "{images}");
    assert!(refused(&request(&file), &Takes::Rows { width: Some(3) }).contains("2 columns of numbers (width, height)"));
    assert!(open(&file, &Takes::Anything).about().classes.is_empty());

    for (text, expected) in [
        ("a,b\n1,2\n1,x\n", "line 3, column 'b': 'x' is no finite number"),
        ("a,b\n1,2\n1,inf\n", "line 3, column 'b': 'inf' is no finite number"),
        ("a,b\n1,\n", "line 2, column 'b': there is no number"),
        ("a,b\nx,y\n", "no column holds numbers"),
        ("1,2\n3,4\n", "line 1 holds numbers only"),
        ("a,b\n1\n", "line 2 has 1 columns, the header has 2: 'b' is missing"),
        ("a,label\n1,\n", "line 2, column 'label': there is no label"),
        ("", "is empty"),
        ("a,b\n", "no rows"),
    ] {
        fs::write(&file, text).unwrap();
        let problem = refused(&request(&file), &Takes::Anything);
        assert!(problem.contains("t.csv: ") && problem.contains(expected), "{problem}");
    }
    fs::write(&file, "a,label\n1,5\n2,0\n").unwrap();
    let set = open(&file, &Takes::Anything);
    assert_eq!((set.about().classes.len(), set.read(0).unwrap().label), (6, Some(5)));
    assert!(
        refused(&InputsRequest { label: Some("lable".into()), ..request(&file) }, &Takes::Anything)
            .contains("did you mean 'label'")
    );
}

#[test]
fn tables_of_texts() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path().join("reviews.tsv"),
        "id\tsentence\treply\tlabel\n1\tgood \"film\"\tyes\tpos\n2\tbad\tno\tneg\n",
    );
    let set = open(&file, &Takes::Texts);
    assert_eq!((set.about().kind, set.about().classes.join(" ")), (InputKind::Texts, "neg pos".into()));
    assert_eq!(set.read(0).unwrap(), Labelled { input: Input::Text("good \"film\"".into(), None), label: Some(1) });
    let pairs = InputsRequest { text: Some("sentence+reply".into()), label: Some("id".into()), ..request(&file) };
    let pairs = InputSet::open(&pairs, &Takes::Anything).unwrap();
    assert_eq!(
        pairs.read(1).unwrap(),
        Labelled { input: Input::Text("bad".into(), Some("no".into())), label: Some(2) }
    );
    let problem = refused(&InputsRequest { text: Some("sentense".into()), ..request(&file) }, &Takes::Texts);
    assert!(problem.contains("did you mean 'sentence'"), "{problem}");
    fs::write(&file, "a\tb\nx\ty\n").unwrap();
    assert!(refused(&request(&file), &Takes::Texts).contains("--text NAME+NAME for pairs"));
    fs::write(&file, "text\n \n").unwrap();
    assert!(refused(&request(&file), &Takes::Texts).contains("line 2, column 'text': the text is empty"));
    fs::write(&file, "text\nno class here\n").unwrap();
    assert_eq!(open(&file, &Takes::Texts).read(0).unwrap().label, None);
}

#[test]
fn strings_of_bits() {
    let cube = open("bits:3", &Takes::Rows { width: Some(3) });
    assert_eq!((cube.about().count, &cube.about().shape[..]), (8, &[3][..]));
    assert!(cube.about().is_every_string());
    // Row 4 of a truth table: x1 is the most significant bit.
    assert_eq!((cube.read(4).unwrap().input, cube.name(4)), (Input::Bits(vec![1, 0, 0]), "100".into()));
    let rows: Vec<Input> = (0..8).map(|row| cube.read(row).unwrap().input).collect();
    let data = pudica_data::Bits::cube(3).unwrap();
    assert_eq!(rows, (0..8).map(|row| Input::Bits(data.row(row).to_vec())).collect::<Vec<_>>());
    let some = InputSet::open(&InputsRequest { sample: Some(5), ..request("bits:16") }, &Takes::Anything).unwrap();
    assert_eq!((some.about().count, some.about().available), (5, 65536));
    assert!(!some.about().is_every_string());

    let long = open("bits:100", &Takes::Anything);
    assert_eq!((long.about().count, long.read(7).unwrap()), (1000, long.read(7).unwrap()));
    assert!(long.about().available > 1000 && !long.about().is_every_string());
    let ones = |index| match long.read(index).unwrap().input {
        Input::Bits(bits) => bits.iter().map(|bit| u32::from(*bit)).sum::<u32>(),
        other => panic!("{other:?}"),
    };
    let all: u32 = (0..1000).map(ones).sum();
    assert!((49_200..50_800).contains(&all), "{all} ones, five standard deviations are 790");
    let other = InputSet::open(&InputsRequest { seed: 1, ..request("bits:100") }, &Takes::Anything).unwrap();
    assert_ne!(other.read(0).unwrap(), long.read(0).unwrap());
    assert_ne!(other.about().digest, long.about().digest);
    assert!(refused(&request("bits:0"), &Takes::Anything).contains("bits:16"));
    assert!(refused(&request("bits:8"), &Takes::Rows { width: Some(6) }).contains("bits:6 is meant"));
    assert!(
        refused(&InputsRequest { size: Some(3), ..request("bits:8") }, &Takes::Anything)
            .contains("--size says nothing")
    );
}
