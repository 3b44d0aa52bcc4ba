//! Random integers, bits, years, decimals and floating-point numbers.

use super::{Equal, Samples, come_back, quoted};
use crate::host::Host;
use proptest::prelude::*;
use proptest::sample::select;

cases! {
    Both: [random_integers_come_back_and_are_found, random_fractions_come_back_and_are_found],
}

fn integers(least: i128, most: i128) -> Samples {
    const SAFE: i128 = (1 << 53) - 1;
    let near_safe = prop_oneof![Just(SAFE), Just(SAFE + 1), Just(-SAFE), Just(-SAFE - 1), Just(SAFE + 2)];
    prop_oneof![Just(least), Just(most), least..=most, -3..4_i128, near_safe]
        .prop_filter("in range", move |number| (least..=most).contains(number))
        .prop_flat_map(|number| {
            let safe = number.abs() <= SAFE;
            let out = if safe { number.to_string() } else { quoted(&number.to_string()) };
            let spelled = select(vec![number.to_string(), quoted(&number.to_string()), format!("{number}.00")]);
            (spelled, Just(out))
        })
        .boxed()
}

fn decimals(whole: usize, scale: usize) -> Samples {
    let digits = |most| prop::collection::vec(0..10_u8, 0..=most);
    (any::<bool>(), digits(whole), digits(scale), 0..3_u8)
        .prop_map(move |(negative, whole, fraction, spelling)| {
            let text = |digits: &[u8]| digits.iter().map(u8::to_string).collect::<String>();
            let (whole, fraction) = (text(&whole), text(&fraction));
            let bare = whole.trim_start_matches('0');
            let zero = bare.is_empty() && fraction.bytes().all(|digit| digit == b'0');
            let sign = if negative { "-" } else { "" };
            let point = if scale > 0 { "." } else { "" };
            let lead = if bare.is_empty() { "0" } else { bare };
            let out = format!("{}{lead}{point}{fraction:0<scale$}", if zero { "" } else { sign });
            let sent = match spelling {
                0 => format!("{sign}{lead}.{fraction}0"),
                1 => quoted(&format!("{sign}{lead}.{fraction}")),
                // Writes all digits before the point and moves the point by the exponent.
                _ => {
                    let digits = format!("{whole}{fraction}");
                    let digits = digits.trim_start_matches('0');
                    let digits = if digits.is_empty() { "0" } else { digits };
                    format!("{sign}{digits}e-{}", fraction.len())
                }
            };
            (sent, quoted(&out))
        })
        .boxed()
}

async fn random_integers_come_back_and_are_found(host: Host) {
    for (kind, bits) in [("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)] {
        let half = 1_i128 << (bits - 1);
        come_back(host, kind, Equal::Exactly, &integers(-half, half - 1)).await;
        let unsigned = format!("{kind} UNSIGNED");
        come_back(host, &unsigned, Equal::Exactly, &integers(0, 2 * half - 1)).await;
    }
    come_back(host, "INT(9) ZEROFILL", Equal::Exactly, &integers(0, i128::from(u32::MAX))).await;
    for width in [1, 7, 8, 9, 31, 53, 54, 63, 64] {
        come_back(host, &format!("BIT({width})"), Equal::Exactly, &integers(0, (1 << width) - 1)).await;
    }
    come_back(host, "YEAR", Equal::Exactly, &integers(1901, 2155)).await;
}

async fn random_fractions_come_back_and_are_found(host: Host) {
    for (kind, whole, scale) in
        [("DECIMAL(65,30)", 35, 30), ("DECIMAL(65,0)", 65, 0), ("DECIMAL(38,38)", 0, 38), ("DECIMAL(5,2)", 3, 2)]
    {
        come_back(host, kind, Equal::Exactly, &decimals(whole, scale)).await;
    }
    let doubles = any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |number| number.is_finite());
    let near = prop_oneof![Just(-0.0), Just(0.1 + 0.2), Just(5e-324), Just(f64::MAX), Just(1e22), -10.0..10.0];
    let doubles =
        prop_oneof![3 => doubles, 1 => near].prop_map(|number| (format!("{number:e}"), format!("{number:e}")));
    come_back(host, "DOUBLE", Equal::AsDoubles, &doubles.boxed()).await;
    let floats = any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |number| number.is_finite());
    let near = prop_oneof![Just(-0.0), Just(0.1), Just(1e-45), Just(f32::MAX), Just(1e38), Just(16_777_216.0)];
    let floats = prop_oneof![3 => floats, 1 => near].prop_map(|number| (format!("{number:e}"), format!("{number:e}")));
    come_back(host, "FLOAT", Equal::AsFloats, &floats.boxed()).await;
}
