//! Tests buckets that are missing, fail, hang or are full: the right error in bounded time, and no partial object.

use hyper::StatusCode;

use super::place::{Place, bucket, impatient_bucket};
use super::service::{ACCESS_KEY, Mood, Service};
use super::*;
use crate::config::{Addressing, BucketAddress};

const MIB: usize = 1024 * 1024;

async fn failures(place: &Place) -> Vec<(&'static str, StoreError)> {
    let store = &place.store;
    let key = ObjectKey::new();
    let mut failures = vec![
        ("check", store.check().await.unwrap_err()),
        ("put", store.put(key, Bytes::from_static(b"x")).await.unwrap_err()),
        ("delete", store.delete(&[key]).await.unwrap_err()),
        ("existing", store.existing(&[key]).await.unwrap_err()),
        ("list", store.list().try_collect::<Vec<_>>().await.unwrap_err()),
    ];
    failures.extend(store.read(key, None).await.err().map(|error| ("read", error)));
    for length in [1, 20 * MIB] {
        let staged = staged(store, &pattern(length), MIB).await;
        failures.push(("publish", store.publish(staged, key).await.unwrap_err()));
    }
    until("staged files are gone", || files_in(&place.staging).is_empty()).await;
    assert_eq!(failures.len(), 8, "{failures:?}");
    failures
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_gone_is_unavailable() {
    let mut service = Service::start().await;
    let place = impatient_bucket(&service);
    service.stop().await;
    for (call, failure) in failures(&place).await {
        assert!(matches!(failure, StoreError::Unavailable(_)), "{call}: {failure:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_says_nothing_is_unavailable() {
    let service = Service::start().await;
    let place = impatient_bucket(&service);
    service.be(Mood::Silent);
    for (call, failure) in failures(&place).await {
        assert!(matches!(failure, StoreError::Unavailable(_)), "{call}: {failure:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_fails_is_unavailable_and_asked_again_so_often() {
    let service = Service::start().await;
    let place = impatient_bucket(&service);
    for status in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS] {
        service.be(Mood::Refuses(status, "<Error><Code>SlowDown</Code></Error>"));
        let before = service.seen().len();
        let read = place.store.read(ObjectKey::new(), None).await;
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{status}");
        assert!(service.seen().len() - before <= 3);
    }
    service.be(Mood::Refuses(StatusCode::INTERNAL_SERVER_ERROR, ""));
    for (call, failure) in failures(&place).await {
        assert!(matches!(failure, StoreError::Unavailable(_)), "{call}: {failure:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_room_is_full() {
    let service = Service::start().await;
    let place = impatient_bucket(&service);
    let words = [
        (StatusCode::INSUFFICIENT_STORAGE, "<Error><Code>XMinioStorageFull</Code></Error>"),
        (StatusCode::INSUFFICIENT_STORAGE, ""),
        (StatusCode::FORBIDDEN, "<Error><Code>QuotaExceeded</Code></Error>"),
    ];
    for (status, body) in words {
        service.be(Mood::Refuses(status, body));
        let put = place.store.put(ObjectKey::new(), Bytes::from_static(b"x")).await;
        assert!(matches!(put, Err(StoreError::Full(_))), "{put:?}");
    }
    for (call, failure) in failures(&place).await {
        // The answer to a HEAD has no body that names the cause of the 403.
        match call {
            "existing" => assert!(matches!(failure, StoreError::Denied(_)), "{call}: {failure:?}"),
            _ => assert!(matches!(failure, StoreError::Full(_)), "{call}: {failure:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_refused_leaves_no_parts() {
    for number in [1, 2, 3] {
        let service = Service::start().await;
        let place = impatient_bucket(&service);
        service.be(Mood::RefusesPart(number));
        let key = ObjectKey::new();
        let staged = staged(&place.store, &pattern(20 * MIB), MIB).await;
        let published = place.store.publish(staged, key).await;
        assert!(matches!(published, Err(StoreError::Unavailable(_))), "{published:?}");
        assert!(is_absent(&place.store, key).await);
        until("no part is left", || service.files().is_empty()).await;
        until("the staged file is gone", || files_in(&place.staging).is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_never_completed_leaves_no_parts() {
    let service = Service::start().await;
    let place = impatient_bucket(&service);
    service.be(Mood::SilentAtTheEnd);
    let key = ObjectKey::new();
    let staged = staged(&place.store, &pattern(20 * MIB), MIB).await;
    let published = place.store.publish(staged, key).await;
    assert!(matches!(published, Err(StoreError::Unavailable(_))), "{published:?}");
    assert!(is_absent(&place.store, key).await);
    until("no part is left", || service.files().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_goes_on_when_the_caller_leaves() {
    let service = Service::start().await;
    let place = bucket(&service, "");
    let (key, bytes) = (ObjectKey::new(), pattern(20 * MIB));
    let staged = staged(&place.store, &bytes, MIB).await;
    let hurry = Duration::from_millis(1);
    let _ = tokio::time::timeout(hurry, place.store.publish(staged, key)).await;
    until("the object is there", || place.objects.join(key.path()).exists()).await;
    assert!(read(&place.store, key, None).await == bytes);
    until("the staged file is gone", || files_in(&place.staging).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_not_there_is_no_missing_object() {
    let service = Service::start().await;
    let place = impatient_bucket(&service);
    std::fs::remove_dir(service.bucket()).unwrap();
    let failure = place.store.check().await.unwrap_err();
    assert!(matches!(failure, StoreError::Unavailable(_)), "{failure:?}");
    // The test service creates missing buckets. Other services answer all calls with this error.
    let body = "<Error><Code>NoSuchBucket</Code></Error>";
    service.be(Mood::Refuses(StatusCode::NOT_FOUND, body));
    for (call, failure) in failures(&place).await {
        assert!(matches!(failure, StoreError::Unavailable(_)), "{call}: {failure:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_keys_are_told_without_being_repeated() {
    let service = Service::start().await;
    let mut address = super::place::address(&service, "");
    address.secret_key = Some("another-secret".into());
    let directory = tempfile::tempdir().unwrap();
    let address = StoreAddress::Bucket(Box::new(address));
    let store = Store::open(&address, directory.path()).unwrap();
    let failure = store.check().await.unwrap_err();
    let text = format!("{failure:?}");
    assert!(matches!(failure, StoreError::Denied(_)), "{text}");
    assert!(!text.contains("another-secret") && !text.contains(ACCESS_KEY), "{text}");
    let problem = shared::error::Problem::from(failure);
    assert_eq!(problem.code().as_str(), "storage_unavailable");
    assert!(!format!("{problem:?}").contains("media/"), "{problem:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_refuses_access_denies_it_at_every_call() {
    let service = Service::start().await;
    let place = impatient_bucket(&service);
    for status in [StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED] {
        service.be(Mood::Refuses(status, "<Error><Code>AccessDenied</Code></Error>"));
        for (call, failure) in failures(&place).await {
            assert!(matches!(failure, StoreError::Denied(_)), "{call}: {failure:?}");
            let code = shared::error::Problem::from(failure).code().as_str();
            assert_eq!(code, "storage_unavailable", "{call}");
        }
    }
}

#[test]
fn a_bucket_without_its_keys_names_the_one_that_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    for (missing, access_key, secret_key) in
        [("media_s3_access_key", None, Some("secret".into())), ("media_s3_secret_key", Some("id".into()), None)]
    {
        let address = BucketAddress {
            bucket: "b".to_owned(),
            prefix: String::new(),
            endpoint: None,
            region: "r".to_owned(),
            access_key,
            secret_key,
            addressing: Addressing::Path,
        };
        let address = StoreAddress::Bucket(Box::new(address));
        let failure = Store::open(&address, directory.path()).unwrap_err();
        assert!(failure.to_string().contains(missing), "{failure}");
    }
}
