//! The corruptions of CIFAR-10-C: those without chance against Pillow, scipy, scikit-image and OpenCV, the others by their statistics.

mod image_files;

use pudica_boolean::npy::read_header;
use pudica_data::corruptions::{Corruption, FrostPictures, corrupt};
use pudica_data::images::{Images, Shape};
use std::io::Read;

const SHAPE: Shape = Shape { height: 32, width: 32, channels: 3 };

/// The picture of `fixtures/corruptions.py`.
fn picture() -> Images {
    let value = |i: usize| {
        let (y, x, c) = (i / 96, i / 3 % 32, i % 3);
        ((3 * x * (c + 1) + 5 * y + (x * y * (c + 2)) / 7 + 40 * ((x / 5 + y / 7 + c) % 3)) % 256) as u8
    };
    Images::new(SHAPE, (0..3072).map(value).collect(), vec![0]).unwrap()
}

/// `count` images of one grey.
fn grey(value: u8, count: usize) -> Images {
    Images::new(SHAPE, vec![value; 3072 * count], vec![0; count]).unwrap()
}

fn made(images: &Images, name: &str, severity: usize) -> Images {
    corrupt(images, Corruption::named(name).unwrap(), severity, 7, None).unwrap()
}

/// Mean and standard deviation of all values, of 0 to 1.
fn moments(images: &Images) -> (f64, f64) {
    let values: Vec<f64> = images.pixels().iter().map(|byte| f64::from(*byte) / 255.0).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, square.sqrt())
}

fn close(found: f64, expected: f64, share: f64) -> bool {
    (found - expected).abs() <= share * expected.abs()
}

#[test]
fn without_chance_as_other_programs_make_them() {
    let mut file = &include_bytes!("fixtures/corruptions.npy")[..];
    assert_eq!(read_header(&mut file).unwrap().shape, [8, 5, 32, 32, 3]);
    // The largest difference and the mean one, in levels of 255. Reals that differ in their last digits may be cut to neighbouring
    // bytes; OpenCV's disk is in single precision. Of JPEG's coefficients, those halfway between two steps may go either way, as
    // libjpeg computes with integers; a wrong subsampling or table would cost 20 levels on average.
    let names = [
        ("gaussian_blur", 1, 0.01),
        ("defocus_blur", 1, 0.1),
        ("zoom_blur", 1, 0.01),
        ("contrast", 1, 0.01),
        ("brightness", 1, 0.02),
        ("saturate", 1, 0.1),
        ("pixelate", 0, 0.0),
        ("jpeg_compression", 40, 1.5),
    ];
    for (name, largest, mean) in names {
        for severity in 1..=5 {
            let mut expected = vec![0; 3072];
            file.read_exact(&mut expected).unwrap();
            let found = made(&picture(), name, severity);
            let differences: Vec<u8> = found.pixels().iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).collect();
            let worst = differences.iter().max().copied().unwrap_or(0);
            let average = differences.iter().map(|d| f64::from(*d)).sum::<f64>() / 3072.0;
            println!("{name} {severity}: worst {worst}, mean {average:.4}");
            assert!(worst <= largest && average <= mean, "{name} at {severity}: worst {worst}, mean {average}");
        }
    }
}

#[test]
fn noises_have_their_moments() {
    let value = 128.0 / 255.0;
    for severity in 1..=5 {
        let level = severity - 1;
        let spread = |name| moments(&made(&grey(128, 20), name, severity));
        // Cutting to bytes takes half a level away from the mean and adds the variance of a uniform level.
        let cut = |deviation: f64| (deviation * deviation + 1.0 / (12.0 * 255.0 * 255.0)).sqrt();
        let (mean, deviation) = spread("gaussian_noise");
        let scale = [0.04, 0.06, 0.08, 0.09, 0.10][level];
        assert!(close(mean, value - 0.5 / 255.0, 0.01) && close(deviation, cut(scale), 0.02), "{mean} {deviation}");
        let (mean, deviation) = spread("shot_noise");
        let photons: f64 = [500.0, 250.0, 100.0, 75.0, 50.0][level];
        assert!(
            close(mean, value - 0.5 / 255.0, 0.01) && close(deviation, (value / photons).sqrt(), 0.02),
            "{deviation}"
        );
        let (_, deviation) = spread("speckle_noise");
        assert!(close(deviation, cut(value * [0.06, 0.1, 0.12, 0.16, 0.2][level]), 0.02), "{deviation}");
        let changed = made(&grey(128, 20), "impulse_noise", severity);
        let count =
            |wanted: u8| changed.pixels().iter().filter(|byte| **byte == wanted).count() as f64 / (20.0 * 3072.0);
        let share = [0.01, 0.02, 0.03, 0.05, 0.07][level];
        assert!(
            close(count(0), share / 2.0, 0.15) && close(count(255), share / 2.0, 0.15),
            "{} {}",
            count(0),
            count(255)
        );
        assert_eq!(count(0) + count(255) + count(128), 1.0);
    }
}

#[test]
fn glass_takes_pixels_from_up_and_left() {
    let (before, after) = (picture(), made(&picture(), "glass_blur", 1));
    let (mut stayed, mut all) = (0, 0);
    for (y, x) in (0..32).flat_map(|y| (0..32).map(move |x| (y, x))) {
        // A byte divided and multiplied by 255 twice may be cut to the one or two below.
        let is = |dy: usize, dx: usize| {
            (0..3).all(|c| {
                let (old, new) =
                    (before.pixels()[((y - dy) * 32 + x - dx) * 3 + c], after.pixels()[(y * 32 + x) * 3 + c]);
                old.wrapping_sub(new) <= 2
            })
        };
        if y < 2 || x < 2 {
            assert!(is(0, 0), "the first two rows and columns stay");
        } else {
            assert!([(0, 0), (0, 1), (1, 0), (1, 1)].iter().any(|(dy, dx)| is(*dy, *dx)), "{y} {x}");
            (stayed, all) = (stayed + usize::from(is(0, 0)), all + 1);
        }
    }
    assert!((0.2..0.3).contains(&(stayed as f64 / all as f64)), "{stayed} of {all}");
}

#[test]
fn motion_blurs_along_its_direction() {
    // Stripes across the motion fade, the more the longer it is; no light is lost on a plain picture.
    let stripes =
        Images::new(SHAPE, (0..3072).map(|i| if i / 3 % 4 < 2 { 250 } else { 10 }).collect(), vec![0]).unwrap();
    let stripes = stripes.select([0; 20]);
    let spreads: Vec<f64> = (1..=5).map(|severity| moments(&made(&stripes, "motion_blur", severity)).1).collect();
    let falling = spreads[..3].windows(2).all(|pair| pair[1] < pair[0]);
    assert!(spreads[0] < moments(&stripes).1 && falling && spreads[4] < spreads[1], "{spreads:?}");
    assert_eq!(made(&grey(200, 3), "motion_blur", 5), grey(200, 3));
    // A single point becomes half a Gaussian of 2 * 6 + 1 weights that sum to one.
    let mut point = vec![0; 3072];
    point[(16 * 32 + 16) * 3] = 255;
    let point = made(&Images::new(SHAPE, point, vec![0]).unwrap(), "motion_blur", 1);
    let sum: u32 = point.pixels().iter().map(|byte| u32::from(*byte)).sum();
    let weights: Vec<f64> = (0..13).map(|i| (-f64::from(i * i) / 2.0).exp()).collect();
    let peak = 255.0 / weights.iter().sum::<f64>();
    assert!((252..=258).contains(&sum), "{sum}");
    assert_eq!(point.pixels().iter().max().copied().unwrap(), peak.round() as u8);
}

#[test]
fn weather_lightens_as_its_formulas_say() {
    for severity in 1..=5 {
        // On one grey v, fog of density d reaches from v v / (v + d) to v.
        let (value, density): (f64, f64) = (128.0 / 255.0, [0.2, 0.5, 0.75, 1.0, 1.5][severity - 1]);
        for index in 0..5 {
            let fog = made(&grey(128, 5), "fog", severity).select([index]);
            let (low, high) = (fog.pixels().iter().min().unwrap(), fog.pixels().iter().max().unwrap());
            assert_eq!(
                (*low, *high >= 127),
                ((value * value / (value + density) * 255.0) as u8, true),
                "fog {severity}"
            );
        }
        // Snow on black: the pale ground, then flakes with their half turn.
        let keep = [0.95, 0.9, 0.9, 0.85, 0.8][severity - 1];
        let snow = made(&grey(0, 5), "snow", severity);
        let ground = ((1.0f64 - keep) * 0.5 * 255.0 + 1e-9) as u8;
        assert!(snow.pixels().iter().min().unwrap().abs_diff(ground) <= if severity > 3 { 60 } else { 1 });
        for index in 0..5 {
            let pixels = snow.image(index);
            assert!((0..1024).all(|at| pixels[at * 3] == pixels[(1023 - at) * 3]), "half a turn");
        }
        assert!(moments(&snow).0 > f64::from(ground) / 255.0);
    }
}

#[test]
fn frost_is_a_weighted_sum() {
    let folder = tempfile::tempdir().unwrap();
    let ice = Shape { height: 200, width: 240, channels: 3 };
    for name in ["frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"] {
        std::fs::write(folder.path().join(name), image_files::png(ice, &vec![160; ice.pixels()])).unwrap();
    }
    let pictures = FrostPictures::read(folder.path()).unwrap();
    for (severity, expected) in [(1, 132), (2, 148), (3, 154), (4, 149), (5, 147)] {
        let frozen = corrupt(&grey(100, 4), Corruption::Frost, severity, 1, Some(&pictures)).unwrap();
        assert!(frozen.pixels().iter().all(|byte| *byte == expected), "{severity}: {}", frozen.pixels()[0]);
    }
    let error = corrupt(&grey(1, 1), Corruption::Frost, 1, 1, None).unwrap_err();
    assert!(error.contains("frost pictures"), "{error}");
    std::fs::remove_file(folder.path().join("frost3.png")).unwrap();
    assert!(FrostPictures::read(folder.path()).err().unwrap().contains("frost3.png"));
}

#[test]
fn elastic_moves_pixels_a_little() {
    // Red tells the column and green the row, so that colours tell where a pixel came from.
    let value = |i: usize| [i / 3 % 32 * 8, i / 96 * 8, 100][i % 3] as u8;
    let map = Images::new(SHAPE, (0..3072).map(value).collect(), vec![0]).unwrap().select([0; 20]);
    for severity in 1..=5 {
        let moved = made(&map, "elastic_transform", severity);
        let mut squares = 0.0;
        for (old, new) in map.pixels().chunks(3).zip(moved.pixels().chunks(3)) {
            assert!(new[2].abs_diff(100) <= 1, "a plain channel stays plain");
            squares += (0..2).map(|c| (f64::from(new[c]) - f64::from(old[c])).powi(2)).sum::<f64>() / 64.0;
        }
        let typical = (squares / (20.0 * 1024.0)).sqrt();
        // Corners move by up to 0.08 to 0.03 of the side, uniformly; the map between them carries that to the picture's corners.
        let shift = [2.56, 2.24, 1.92, 1.6, 0.96][severity - 1] / 3.0f64.sqrt();
        assert!((0.5 * shift..3.0 * shift).contains(&typical), "{severity}: {typical} for {shift}");
    }
}

#[test]
fn seeds_name_the_chance() {
    let twice = picture().select([0, 0]);
    for (corruption, name) in Corruption::ALL.into_iter().filter(|(corruption, _)| *corruption != Corruption::Frost) {
        let draw = |seed| corrupt(&twice, corruption, 3, seed, None).unwrap();
        let first = draw(1);
        assert_eq!(first, draw(1), "{name}");
        assert_ne!(first, twice, "{name}");
        let chance = first.image(0) != first.image(1);
        assert_eq!(chance, first != draw(2), "{name}: images and seeds have their own numbers, or none has any");
        assert_eq!(Corruption::named(name).unwrap(), corruption);
    }
    assert!(Corruption::named("fogg").unwrap_err().contains("did you mean 'fog'?"));
    assert!(corrupt(&twice, Corruption::Fog, 6, 1, None).unwrap_err().contains("severity of 6"));
    let small = Images::new(Shape { height: 1, width: 1, channels: 3 }, vec![0; 3], vec![0]).unwrap();
    assert!(corrupt(&small, Corruption::Fog, 1, 1, None).unwrap_err().contains("32 x 32 x 3"));
}

#[test]
fn spatter_leaves_most_of_the_picture_and_has_its_colours() {
    for severity in 1..=3 {
        // Water only adds light: to red at most 0.5 * 175 / 255, to green and blue the same, more.
        let wet = made(&grey(60, 40), "spatter", severity);
        for pixel in wet.pixels().chunks(3) {
            let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(|value| i32::from(value) - 60);
            assert!((0..=88).contains(&red) && green == blue && (green - red * 238 / 175).abs() <= 2, "{pixel:?}");
        }
        let touched = wet.pixels().chunks(3).filter(|pixel| pixel[0] > 60).count() as f64 / (40.0 * 1024.0);
        assert!((0.001..0.6).contains(&touched), "severity {severity}: {touched}");
        // Each picture's brightest drop has all the strength there is.
        let brightest: Vec<u8> = (0..40).map(|i| wet.image(i).iter().copied().max().unwrap_or(0)).collect();
        assert!(brightest.iter().filter(|value| value.abs_diff(60 + 119) <= 1).count() > 35, "{brightest:?}");
    }
    let covered = |severity| {
        let muddy = made(&grey(200, 40), "spatter", severity);
        // Mud is opaque: of the brown (63, 42, 20) at least four parts in five.
        let brown = |pixel: &&[u8]| {
            (63..=91).contains(&pixel[0]) && (42..=74).contains(&pixel[1]) && (20..=57).contains(&pixel[2])
        };
        let clean = muddy.pixels().chunks(3).filter(|pixel| *pixel == [200, 200, 200]).count();
        let brown = muddy.pixels().chunks(3).filter(brown).count();
        assert_eq!(clean + brown, 40 * 1024);
        brown as f64 / (40.0 * 1024.0)
    };
    let (four, five) = (covered(4), covered(5));
    assert!(0.01 < four && four < five && five < 0.5, "{four} {five}");
}
