//! Tests that variants of TIFF, ICO and AVIF are decoded correctly, or accepted without a thumbnail.

use super::samples::encoded;
use super::{Picture, examined, shown};
use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};

/// Builds a little-endian TIFF, with one strip unless `tags` contains the strips' offsets.
fn tiff(tags: &[(u16, &[u16])], data: &[u8]) -> Vec<u8> {
    let mut tags: Vec<(u16, Vec<u32>)> =
        tags.iter().map(|(tag, values)| (*tag, values.iter().copied().map(u32::from).collect())).collect();
    if tags.iter().all(|(tag, _)| *tag != 273) {
        tags.push((273, vec![8]));
        tags.push((279, vec![data.len() as u32]));
    }
    tags.sort_by_key(|(tag, _)| *tag);
    let mut file = b"II*\0".to_vec();
    let directory = 8 + data.len().next_multiple_of(2);
    file.extend((directory as u32).to_le_bytes());
    file.extend(data);
    file.resize(directory, 0);
    file.extend((tags.len() as u16).to_le_bytes());
    let mut values_at = directory + 2 + tags.len() * 12 + 4;
    let mut more = Vec::new();
    for (tag, values) in &tags {
        let (kind, width) = match tag {
            273 | 279 if values.len() == 1 => (4_u16, 4),
            _ => (3_u16, 2),
        };
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend((values.len() as u32).to_le_bytes());
        let mut bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect();
        if bytes.len() > 4 {
            file.extend((values_at as u32).to_le_bytes());
            values_at += bytes.len();
            more.extend(bytes);
        } else {
            bytes.resize(4, 0);
            file.extend(bytes);
        }
    }
    file.extend([0; 4]);
    file.extend(more);
    file
}

type Tags<'t> = Vec<(u16, &'t [u16])>;

const WIDTH: u16 = 64;
const HEIGHT: u16 = 48;

/// Returns the TIFF tags of an uncompressed image of 64 × 48 pixels.
fn picture_of<'t>(bits: &'t [u16], colours: &'t [u16], samples: &'t [u16]) -> Tags<'t> {
    vec![(256, &[WIDTH]), (257, &[HEIGHT]), (258, bits), (259, &[1]), (262, colours), (277, samples), (278, &[HEIGHT])]
}

fn with<'t>(mut tags: Tags<'t>, more: &[(u16, &'t [u16])]) -> Tags<'t> {
    tags.retain(|(tag, _)| more.iter().all(|(other, _)| other != tag));
    tags.extend(more);
    tags
}

#[test]
fn valid_tiffs_that_no_decoder_here_reads_are_accepted_without_a_thumbnail() {
    let pixels = usize::from(WIDTH) * usize::from(HEIGHT);
    let (grey, rgb) = (vec![100; pixels], vec![100; pixels * 3]);
    let bilevel = vec![0b1010_0000; pixels / 8];
    let palette = vec![9_u16; 768];
    let plain_rgb = || picture_of(&[8, 8, 8], &[2], &[3]);
    let cases: [(&str, Tags<'_>, &[u8]); 9] = [
        ("a palette", with(picture_of(&[8], &[3], &[1]), &[(320, &palette)]), &grey),
        ("bits in the other order", with(picture_of(&[1], &[1], &[1]), &[(266, &[2])]), &bilevel),
        (
            "a plane for each colour",
            with(plain_rgb(), &[(284, &[2]), (273, &[8, 3_080, 6_152]), (279, &[3_072; 3])]),
            &rgb,
        ),
        ("CCITT group 3", with(picture_of(&[1], &[0], &[1]), &[(259, &[3])]), &bilevel),
        ("CCITT run lengths", with(picture_of(&[1], &[0], &[1]), &[(259, &[2])]), &bilevel),
        ("subsampled YCbCr", with(picture_of(&[8, 8, 8], &[6], &[3]), &[(530, &[2, 2])]), &rgb),
        ("CIE L*a*b*", picture_of(&[8, 8, 8], &[8], &[3]), &rgb),
        ("whole numbers with a sign", with(picture_of(&[8], &[1], &[1]), &[(339, &[2])]), &grey),
        (
            "differences over samples without a meaning",
            with(picture_of(&[8, 8, 8, 8], &[2], &[4]), &[(338, &[0]), (317, &[2])]),
            &[100; 64 * 48 * 4],
        ),
    ];
    for (name, tags, data) in cases {
        let file = tiff(&tags, data);
        is_without_thumbnail(name, &file);
        // A strip that extends beyond the file's end.
        let strip = file.windows(2).rposition(|pair| pair == 279_u16.to_le_bytes());
        let mut cut = file.clone();
        let length = strip.expect("the tag") + 8;
        cut[length..length + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let result = examined(&cut);
        assert!(result.is_err(), "{name}: {result:?}");
    }
}

#[test]
fn tiffs_that_the_decoder_does_not_take_at_all_are_accepted_by_their_directory() {
    for (name, bits, colours, samples) in
        [("a colour filter", vec![8], 32_803, 1), ("colours of unequal depth", vec![5, 6, 5], 2, 3)]
    {
        let (colours, samples) = ([colours], [samples]);
        let tags = picture_of(&bits, &colours, &samples);
        is_without_thumbnail(name, &tiff(&tags, &[100; 64 * 48 * 3]));
    }
}

fn is_without_thumbnail(name: &str, file: &[u8]) {
    let expected = Picture { width: u32::from(WIDTH), height: u32::from(HEIGHT), thumbnail: None };
    assert_eq!(examined(file).ok(), Some(expected), "{name}");
}

#[test]
fn a_tiff_turned_by_a_quarter_has_its_size_as_it_is_shown_without_a_thumbnail_too() {
    let data = [100; 64 * 48];
    let tags = with(picture_of(&[8], &[3], &[1]), &[(320, &[9; 768]), (274, &[6])]);
    let picture = examined(&tiff(&tags, &data)).expect("a picture");
    assert_eq!((picture.width, picture.height), (48, 64));
}

#[test]
fn samples_without_a_meaning_are_left_out() {
    // Red on the left, blue on the right, and stripes in the fourth sample.
    let data: Vec<u8> = (0..usize::from(WIDTH) * usize::from(HEIGHT))
        .flat_map(|at| {
            let is_left = at % usize::from(WIDTH) < 32;
            let [red, blue] = if is_left { [250, 5] } else { [5, 250] };
            [red, 5, blue, (at % 2 * 255) as u8]
        })
        .collect();
    let tags = with(picture_of(&[8, 8, 8, 8], &[2], &[4]), &[(338, &[0])]);
    let shown = shown(&examined(&tiff(&tags, &data)).expect("a picture"));
    for (x, [r, b]) in [(5, [250, 5]), (60, [5, 250])] {
        let [red, _, blue, _] = shown.get_pixel(x, 20).0;
        assert!(red.abs_diff(r) < 12 && blue.abs_diff(b) < 12, "{red} {blue}");
    }
}

/// Builds an icon file from images, each given as side in pixels, bits per pixel and data.
fn icon(pictures: &[(u8, u16, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0, 0, 1, 0, pictures.len() as u8, 0];
    let mut at = 6 + 16 * pictures.len();
    for (side, bits, data) in pictures {
        file.extend([*side, *side, 0, 0, 1, 0]);
        file.extend(bits.to_le_bytes());
        file.extend((data.len() as u32).to_le_bytes());
        file.extend((at as u32).to_le_bytes());
        at += data.len();
    }
    file.extend(pictures.iter().flat_map(|(_, _, data)| data));
    file
}

/// Builds a square bitmap for an icon: one colour with 32 bits per pixel, and a mask of one bit per pixel.
fn bitmap(side: u8, [red, green, blue, opacity]: [u8; 4], mask: u8) -> Vec<u8> {
    let sides = usize::from(side);
    let mut data = 40_u32.to_le_bytes().to_vec();
    data.extend(u32::from(side).to_le_bytes());
    data.extend((u32::from(side) * 2).to_le_bytes());
    data.extend([1, 0, 32, 0]);
    data.resize(40, 0);
    data.extend([blue, green, red, opacity].repeat(sides * sides));
    data.extend(vec![mask; sides.div_ceil(32) * 4 * sides]);
    data
}

#[test]
fn an_icons_own_opacity_counts_and_its_mask_only_without_one() {
    let middle = |colour, mask| {
        let file = icon(&[(32, 32, bitmap(32, colour, mask))]);
        shown(&examined(&file).expect("an icon")).get_pixel(16, 16).0
    };
    let near = |[red, _, _, opacity]: [u8; 4], expected: u8| red.abs_diff(200) < 10 && opacity.abs_diff(expected) < 10;
    assert!(near(middle([200, 10, 10, 255], 0xFF), 255));
    assert!(near(middle([200, 10, 10, 128], 0xFF), 128));
    assert!(near(middle([200, 10, 10, 0], 0), 255));
    assert_eq!(middle([200, 10, 10, 0], 0xFF)[3], 0);
}

#[test]
fn the_largest_picture_of_an_icon_is_shown_in_whatever_order_they_stand() {
    let png = |side: u32| {
        let plain = RgbaImage::from_pixel(side, side, Rgba([9, 9, 9, 255]));
        encoded(&DynamicImage::ImageRgba8(plain), ImageFormat::Png)
    };
    // As in real icons, the directory entry of a larger picture has fewer bits per pixel, none at all, or a wrong size
    // that still sorts correctly.
    let pictures = [
        (16, 32, bitmap(16, [1, 2, 3, 255], 0)),
        (48, 8, bitmap(48, [1, 2, 3, 255], 0)),
        (64, 0, png(64)),
        (47, 32, bitmap(48, [1, 2, 3, 255], 0)),
    ];
    for (order, expected) in
        [(vec![0, 1], 48), (vec![1, 0], 48), (vec![0, 1, 2], 64), (vec![2, 1, 0], 64), (vec![3, 0], 48)]
    {
        let chosen: Vec<_> = order.iter().map(|at| pictures[*at].clone()).collect();
        let picture = examined(&icon(&chosen)).expect("an icon");
        assert_eq!((picture.width, picture.height), (expected, expected), "{order:?}");
    }
}

#[test]
fn an_avif_is_as_large_as_its_primary_item() {
    let boxed = |kind: &[u8; 4], content: &[u8]| {
        let mut bytes = (content.len() as u32 + 8).to_be_bytes().to_vec();
        bytes.extend(kind);
        bytes.extend(content);
        bytes
    };
    let extent = |width: u32, height: u32| {
        let mut content = vec![0; 4];
        content.extend(width.to_be_bytes());
        content.extend(height.to_be_bytes());
        boxed(b"ispe", &content)
    };
    // Properties 1 to 4: the gain map has the first size and the rotation; the picture has the third property's size.
    let properties = [extent(4000, 3000), boxed(b"irot", &[1]), extent(48, 32), extent(8, 8)].concat();
    let short = [0, 0, 0, 0, 0, 0, 0, 2, 0, 7, 2, 1, 0x82, 0, 9, 1, 3];
    let long = [1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 7, 2, 0, 1, 0x80, 2, 0, 0, 0, 9, 1, 0, 3];
    let file = |primary: &[u8], associations: &[u8]| {
        let properties = [boxed(b"ipco", &properties), boxed(b"ipma", associations)].concat();
        let meta = [vec![0; 4], boxed(b"pitm", primary), boxed(b"iprp", &properties)].concat();
        [boxed(b"ftyp", b"avif\0\0\0\0avifmif1"), boxed(b"meta", &meta)].concat()
    };
    for (primary, associations, size) in [
        (&[0, 0, 0, 0, 0, 9][..], &short[..], (48, 32)),
        (&[0, 0, 0, 0, 0, 7], &short, (3000, 4000)),
        (&[1, 0, 0, 0, 0, 0, 0, 9], &long, (48, 32)),
        (&[1, 0, 0, 0, 0, 0, 0, 7], &long, (3000, 4000)),
    ] {
        let picture = examined(&file(primary, associations)).expect("a picture");
        assert_eq!((picture.width, picture.height), size);
        assert_eq!(picture.thumbnail, None);
    }
}
