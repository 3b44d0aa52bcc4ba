//! Tests of the configuration: which source takes precedence, and the messages for refused values.

use super::*;

fn sources(file: &str) -> (tempfile::TempDir, Sources) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("selkie.toml"), file).unwrap();
    let sources = Sources { directory: directory.path().to_owned(), ..Sources::default() };
    (directory, sources)
}

fn with_variable(mut sources: Sources, name: &str, value: &str) -> Sources {
    sources.environment.insert(name.to_owned(), value.to_owned());
    sources
}

fn refusal(sources: Sources) -> String {
    Config::load(sources).unwrap_err().to_string()
}

#[test]
fn every_default_passes_its_own_check() {
    let config = Config::load(Sources::default()).unwrap();
    assert_eq!(config.listen.port(), 8080);
    assert_eq!(config.pool_size, 8);
    assert!(config.database_url.is_none());
}

#[test]
fn the_settings_page_holds_the_table_of_settings() {
    let page = include_str!("../../../docs/settings.md");
    let row = |setting: &Setting| {
        let default = setting.default.map_or_else(String::new, |default| format!("`{default}` "));
        let secret = if setting.visibility == Visibility::Secret { "; secret" } else { "" };
        format!("| `{}` | {default}| {}{secret} |\n", setting.name, setting.help)
    };
    let table = SETTINGS.iter().map(row).collect::<String>();
    assert!(page.contains(&table), "docs/settings.md must hold these rows:\n{table}");
}

#[test]
fn the_sample_file_holds_every_setting_with_its_default() {
    let is_setting = |line: &&str| SETTINGS.iter().any(|setting| line.starts_with(&format!("# {} = ", setting.name)));
    let sample = sample_file();
    let lines: Vec<&str> = sample.lines().filter(is_setting).map(|line| &line[2..]).collect();
    assert_eq!(lines.len(), SETTINGS.len());
    let with_default = lines.into_iter().filter(|line| !line.ends_with("\"\"")).collect::<Vec<_>>().join("\n");
    let (directory, read) = sources(&with_default);
    let untouched = Sources { directory: directory.path().to_owned(), ..Sources::default() };
    std::fs::remove_file(directory.path().join("selkie.toml")).unwrap();
    let default = format!("{:?}", Config::load(untouched).unwrap());
    std::fs::write(directory.path().join("selkie.toml"), &with_default).unwrap();
    let mut sampled = Config::load(read).unwrap();
    assert!(sampled.file.take().is_some());
    assert_eq!(format!("{sampled:?}"), default);
}

#[test]
fn every_setting_of_the_table_is_checked() {
    for setting in SETTINGS.iter().filter(|setting| setting.name != "data_dir") {
        let sources = with_variable(Sources::default(), &setting.variable(), "\u{1}");
        let message = refusal(sources);
        assert!(message.starts_with(setting.name), "{message}");
        assert!(message.contains(&setting.variable()), "{message}");
    }
}

#[test]
fn flags_come_before_the_environment_before_the_file_before_the_default() {
    let (_directory, mut sources) = sources("pool_size = 5\npool_queue = 6\nrows_batch_max = 7\n");
    sources.flags.insert("pool_size", "3".to_owned());
    let sources = with_variable(sources, "SELKIE_POOL_SIZE", "4");
    let sources = with_variable(sources, "SELKIE_POOL_QUEUE", "9");
    let config = Config::load(sources).unwrap();
    let values = (config.pool_size, config.pool_queue, config.rows_batch_max);
    assert_eq!(values, (3, 9, 7));
    assert_eq!(config.json_body_max_bytes, 16 * 1024 * 1024);
}

#[test]
fn an_empty_variable_is_an_unset_one() {
    let sources = with_variable(Sources::default(), "SELKIE_DATABASE_URL", "");
    assert!(Config::load(sources).unwrap().database_url.is_none());
}

#[test]
fn a_named_file_must_exist_and_the_default_one_need_not() {
    let directory = tempfile::tempdir().unwrap();
    let mut sources = Sources { directory: directory.path().to_owned(), ..Sources::default() };
    sources.file = Some("other.toml".into());
    assert!(refusal(sources).contains("other.toml can't be read"));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_name() {
    let (_directory, sources) = sources("pool_sise = 5\n");
    let message = refusal(sources);
    assert!(message.contains("`pool_sise`"), "{message}");
    assert!(message.contains("did you mean `pool_size`?"), "{message}");
}

#[test]
fn a_bad_value_is_named_with_the_spelling_that_was_used_and_all_others() {
    let sources = with_variable(Sources::default(), "SELKIE_QUERY_TIMEOUT", "30");
    let message = refusal(sources);
    for part in ["query_timeout must be a time", "SELKIE_QUERY_TIMEOUT says \"30\"", "--query-timeout", "in the file"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn no_message_and_no_debug_output_repeats_a_secret() {
    let url = "mysql://root:hunter2@h?nonsense=1";
    let sources = with_variable(Sources::default(), "SELKIE_DATABASE_URL", url);
    assert!(!refusal(sources).contains("hunter2"));
    let sources = with_variable(Sources::default(), "SELKIE_SECRET", "hunter2");
    assert!(!refusal(sources).contains("hunter2"));
    let (_directory, sources) = self::sources("database_url = 'hunter2\n");
    let message = refusal(sources);
    assert!(message.contains("line 1") && !message.contains("hunter2"), "{message}");
    let secret = "hunter2".repeat(10) + "ab";
    let sources = with_variable(Sources::default(), "SELKIE_SECRET", &secret);
    assert!(!format!("{:?}", Config::load(sources)).contains("hunter2"));
}

#[test]
fn ready_made_accounts_stand_in_a_table_of_the_file() {
    let (_directory, sources) =
        sources("[accounts.default]\nrw = { user = 'a', password = 'hunter2' }\nro = { user = 'b', password = '' }\n");
    let config = Config::load(sources).unwrap();
    assert_eq!(config.accounts["default"].rw.user, "a");
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn an_account_without_a_password_is_refused() {
    let (_directory, sources) = sources("[accounts.default]\nrw = { user = 'a' }\n");
    assert!(refusal(sources).contains("missing field `password`"));
}

#[test]
fn a_list_in_the_file_reads_as_its_comma_list() {
    let (_directory, sources) = sources("cors_origins = ['https://a.example', 'http://b:3000']\n");
    let expected = CorsOrigins::parse("https://a.example,http://b:3000").unwrap();
    assert_eq!(Config::load(sources).unwrap().cors_origins, expected);
}

#[test]
fn media_lie_in_the_data_directory_unless_a_place_is_named() {
    let base = PathBuf::from("/base");
    let sources = Sources { directory: base.clone(), ..Sources::default() };
    let config = Config::load(sources).unwrap();
    let StoreAddress::Directory(path) = &config.media_store else {
        panic!("no directory: {:?}", config.media_store);
    };
    assert_eq!(*path, base.join(".selkie/media"));
    assert_eq!(*path, config.media_dir());
    let sources = with_variable(Sources::default(), "SELKIE_MEDIA_STORE", "file:///srv/m");
    let config = Config::load(sources).unwrap();
    assert!(matches!(&config.media_store, StoreAddress::Directory(path) if path == Path::new("/srv/m")));
}

#[test]
fn a_bucket_has_keys_only_if_they_are_set_and_hides_them() {
    let sources = with_variable(Sources::default(), "SELKIE_MEDIA_STORE", "s3://b/p");
    assert!(Config::load(sources.clone()).is_ok());
    let faulty = with_variable(sources.clone(), "SELKIE_MEDIA_S3_ACCESS_KEY", "a b");
    assert!(refusal(faulty).starts_with("media_s3_access_key must be "));
    let sources = with_variable(sources, "SELKIE_MEDIA_S3_ACCESS_KEY", "hunter2id");
    let sources = with_variable(sources, "SELKIE_MEDIA_S3_SECRET_KEY", "hunter2");
    let sources = with_variable(sources, "SELKIE_MEDIA_S3_ENDPOINT", "http://[::1]:9000");
    let config = Config::load(sources).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    let StoreAddress::Bucket(bucket) = config.media_store else {
        panic!("no bucket");
    };
    assert_eq!((&*bucket.bucket, &*bucket.prefix), ("b", "p"));
    assert_eq!(bucket.region, "us-east-1");
    assert_eq!(bucket.addressing, Addressing::Path);
    assert_eq!(bucket.endpoint.unwrap().port(), Some(9000));
}

#[test]
fn the_public_url_has_no_path() {
    let with = |url| with_variable(Sources::default(), "SELKIE_PUBLIC_URL", url);
    let config = Config::load(with("https://api.example.com/")).unwrap();
    assert_eq!(config.public_url.unwrap().as_str(), "https://api.example.com");
    assert!(refusal(with("https://example.com/api")).contains("public_url must be a URL"));
    assert!(Config::load(with("")).unwrap().public_url.is_none());
}

#[test]
fn a_secret_may_be_in_a_file_that_a_variable_names() {
    let (directory, sources) = sources("database_url = 'mysql://a:b@in-the-file'\n");
    let write = |text: &str| std::fs::write(directory.path().join("url"), text).unwrap();
    let sources = with_variable(sources, "SELKIE_DATABASE_URL_FILE", "url");
    for end in ["", "\n", "\r\n"] {
        write(&format!("mysql://a:hunter2@named{end}"));
        let layers = Layers::read(sources.clone()).unwrap();
        let found = layers.get("database_url").unwrap();
        assert_eq!((&*found.text, found.origin), ("mysql://a:hunter2@named", ValueOrigin::SecretFile));
    }
    write("hunter2\n");
    let message = refusal(sources.clone());
    assert!(message.contains("the file that SELKIE_DATABASE_URL_FILE names says another value"), "{message}");
    assert!(message.contains("SELKIE_DATABASE_URL_FILE, or `database_url` in the file"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
    let twice = with_variable(sources.clone(), "SELKIE_DATABASE_URL", "mysql://a:hunter2@h");
    assert_eq!(refusal(twice), "SELKIE_DATABASE_URL and SELKIE_DATABASE_URL_FILE are both set; set one of them");
    let unset = with_variable(sources.clone(), "SELKIE_DATABASE_URL_FILE", "");
    assert_eq!(Layers::read(unset).unwrap().get("database_url").unwrap().origin, ValueOrigin::File);
    let path = directory.path().join("url");
    for (text, reason) in [("\n", "it is empty"), (&*"a".repeat(64 * 1024 + 1), "it has more than 65536 bytes")] {
        write(text);
        let expected =
            format!("the file {}, which SELKIE_DATABASE_URL_FILE names, can't be read: {reason}", path.display());
        assert_eq!(refusal(sources.clone()), expected);
    }
    std::fs::remove_file(&path).unwrap();
    assert!(refusal(sources).ends_with("No such file or directory (os error 2)"));
}

#[test]
fn every_secret_setting_may_be_in_a_file_and_no_other() {
    for setting in SETTINGS {
        let is_secret = setting.visibility == Visibility::Secret;
        let expected = is_secret.then(|| format!("{}_FILE", setting.variable()));
        assert_eq!(setting.file_variable(), expected);
        if let Some(variable) = expected {
            let message = refusal(with_variable(Sources::default(), &variable, "/dev/null"));
            assert!(message.contains(&variable), "{message}");
        }
    }
}
