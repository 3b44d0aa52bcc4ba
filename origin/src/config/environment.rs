//! Checks variables named `SELKIE_…` that are no settings. A misspelt setting is an error; any other variable is only
//! reported, since it may belong to another program.

use std::collections::BTreeMap;
use std::fmt;

use super::setting::{SETTINGS, Setting};
use super::{ConfigError, nearest};

const PREFIX: &str = "SELKIE_";

/// Variables (without `SELKIE_`) that are no settings but have a meaning.
const KNOWN: [&str; 11] = [
    "CONFIG",
    "ORIGIN_URL",
    "EDGE_URL",
    "KEY",
    "FULL_KEY",
    "READ_KEY",
    "DATABASE",
    "PROJECT",
    "FAULT_POINT",
    "BIN",
    "BLESS",
];

/// Variables of tests, and variables that Kubernetes sets for a service named `selkie`.
const KNOWN_BEGINNINGS: [&str; 5] = ["TEST_", "DIFFERENTIAL_", "FUZZ_", "SERVICE_", "PORT_"];

/// The minimum similarity (normalized Damerau-Levenshtein) of a misspelt setting: at most one letter in five differs.
const MISSPELT: f64 = 0.8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVariable {
    name: String,
    nearest: Option<String>,
}

impl fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the environment variable {} is no setting", self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean {nearest}?"),
            None => write!(f, " and has no effect"),
        }
    }
}

pub(super) fn unknown(environment: &BTreeMap<String, String>) -> Result<Vec<UnknownVariable>, ConfigError> {
    let mut unknown = Vec::new();
    let names = names();
    for (name, value) in environment {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let word = rest.to_lowercase();
        let is_setting = rest == word.to_uppercase() && names.contains(&word);
        // Kubernetes sets `SELKIE_PORT` to the URL of a service named `selkie`.
        let is_address = rest == "PORT" && value.contains("://");
        let is_known = KNOWN.contains(&rest) || KNOWN_BEGINNINGS.iter().any(|beginning| rest.starts_with(beginning));
        if is_setting || is_known || is_address {
            continue;
        }
        let is_misspelt = names.iter().any(|known| strsim::normalized_damerau_levenshtein(&word, known) >= MISSPELT);
        let variable = UnknownVariable {
            name: name.clone(),
            nearest: nearest(&word, names.iter().map(String::as_str))
                .map(|name| format!("{PREFIX}{}", name.to_uppercase())),
        };
        if is_misspelt {
            return Err(ConfigError::Misspelt(variable));
        }
        unknown.push(variable);
    }
    Ok(unknown)
}

fn names() -> Vec<String> {
    let variables = |setting: &Setting| [Some(setting.variable()), setting.file_variable()];
    let all = SETTINGS.iter().flat_map(variables).flatten();
    all.filter_map(|variable| variable.strip_prefix(PREFIX).map(str::to_lowercase)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<Vec<String>, String> {
        let environment = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        unknown(&environment)
            .map(|found| found.iter().map(ToString::to_string).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_misspelt_setting_is_refused_with_the_right_name() {
        for (name, meant) in [
            ("SELKIE_DATABSE_URL", "SELKIE_DATABASE_URL"),
            ("SELKIE_DATABASE_URI", "SELKIE_DATABASE_URL"),
            ("SELKIE_DATABASEURL", "SELKIE_DATABASE_URL"),
            ("SELKIE_REQUIRE_EGDE", "SELKIE_REQUIRE_EDGE"),
            ("SELKIE_POOLSIZE", "SELKIE_POOL_SIZE"),
            ("SELKIE_database_url", "SELKIE_DATABASE_URL"),
            ("SELKIE_DATABASE_URL_FIEL", "SELKIE_DATABASE_URL_FILE"),
            ("SELKIE_SECRT_FILE", "SELKIE_SECRET_FILE"),
        ] {
            let message = read(name, "x").unwrap_err();
            assert!(message.contains(name), "{message}");
            assert!(message.contains(&format!("did you mean {meant}?")), "{message}");
        }
    }

    #[test]
    fn another_variable_is_told_and_has_no_effect() {
        let told = read("SELKIE_IMAGE", "x").unwrap();
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("SELKIE_IMAGE is no setting"), "{told:?}");
        let told = read("SELKIE_DATA_DIRECTORY", "x").unwrap();
        assert!(told[0].contains("did you mean SELKIE_DATA_DIR?"), "{told:?}");
    }

    #[test]
    fn settings_and_what_others_set_are_passed_over() {
        for (name, value) in [
            ("SELKIE_DATABASE_URL", "x"),
            ("SELKIE_DATABASE_URL_FILE", "x"),
            ("SELKIE_CONFIG", "x"),
            ("SELKIE_FULL_KEY", "x"),
            ("SELKIE_SERVICE_HOST", "10.0.0.1"),
            ("SELKIE_PORT", "tcp://10.0.0.1:8080"),
            ("SELKIE_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ] {
            assert_eq!(read(name, value), Ok(Vec::new()), "{name}");
        }
        assert_eq!(read("SELKIE_PORT", "8080").unwrap().len(), 1);
    }
}
