//! Files of two seconds, as ffmpeg writes them.

use super::duration;
use crate::media::sniff::sniff;
use std::io::Write;

macro_rules! files {
    ($($name:literal, $mime:literal;)*) => {
        const FILES: &[(&str, &str, &[u8])] = &[$((
            $name,
            $mime,
            include_bytes!(concat!("../../../tests/fixtures/two-seconds", $name)),
        ),)*];
    };
}

files! {
    ".mp4", "video/mp4";
    "-fragmented.mp4", "video/mp4";
    ".mov", "video/quicktime";
    ".webm", "video/webm";
    ".mkv", "video/x-matroska";
    ".m4a", "audio/mp4";
    ".mp3", "audio/mpeg";
    ".flac", "audio/flac";
    ".wav", "audio/wav";
    ".aiff", "audio/aiff";
    ".aac", "audio/aac";
    "-vorbis.ogg", "audio/ogg";
    "-opus.ogg", "audio/ogg";
}

fn seconds(bytes: &[u8]) -> Option<f64> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    duration(file.path(), sniff(bytes)?)
}

#[test]
fn every_kind_of_file_tells_how_long_it_lasts() {
    for (name, mime, bytes) in FILES {
        assert_eq!(sniff(bytes).map(|found| found.mime), Some(*mime), "{name}");
        let told = seconds(bytes);
        let tells = !name.contains("fragmented");
        assert_eq!(told.is_some(), tells, "{name}");
        if let Some(told) = told {
            // Encoders of sound add a frame or two of silence.
            assert!((1.9..2.3).contains(&told), "{name}: {told}");
        }
    }
}

#[test]
fn broken_files_tell_nothing_and_break_nothing() {
    let mut state = 1_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for (_, _, bytes) in FILES {
        for length in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
            let _ = seconds(&bytes[..length]);
        }
        for _ in 0..60 {
            let mut broken = bytes.to_vec();
            for _ in 0..1 + random() % 8 {
                // Headers matter most.
                let at = random()
                    % (broken.len() as u64).min(if random() % 2 == 0 { 200 } else { u64::MAX });
                broken[at as usize] = random() as u8;
            }
            if let Some(told) = seconds(&broken) {
                assert!(told.is_finite() && told >= 0.0);
            }
        }
    }
}
