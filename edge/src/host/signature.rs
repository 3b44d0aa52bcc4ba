//! Verifies the signatures of users' tokens with the runtime's WebCrypto.

use super::awaited::Awaited;
use shared::key::{KeyMaterial, UserToken, UserTokenAlgorithm, VerificationKey};
use std::cell::RefCell;
use worker::js_sys::{self, Array, JSON, Object, Reflect, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::web_sys::{CryptoKey, SubtleCrypto};

thread_local! {
    /// The issuers' keys as imported by WebCrypto, so that each is imported once. Only keys in `ISSUERS` are added.
    static IMPORTED: RefCell<Vec<(KeyMaterial, CryptoKey)>> = RefCell::default();
}

/// Returns whether the key signed the token; `None` if that is unknown, for example because the runtime refuses the
/// key. Waits for no I/O.
pub(crate) async fn has_signed(key: &VerificationKey, token: &UserToken<'_>) -> Option<bool> {
    let subtle: SubtleCrypto = ["crypto", "subtle"]
        .iter()
        .try_fold(js_sys::global().into(), |value: JsValue, name| Reflect::get(&value, &(*name).into()))
        .ok()?
        .unchecked_into();
    let algorithm = algorithm(key.algorithm())?;
    let known = IMPORTED.with_borrow(|keys| {
        keys.iter().find(|(material, _)| material == key.material()).map(|(_, imported)| imported.clone())
    });
    let imported = match known {
        Some(imported) => imported,
        None => {
            let imported = import(&subtle, key, &algorithm).await?;
            IMPORTED.with_borrow_mut(|keys| keys.push((key.material().clone(), imported.clone())));
            imported
        }
    };
    // The bytes are copied, because the runtime may read them while this function waits.
    let [signature, message] = [token.signature(), token.signed_bytes()].map(Uint8Array::from);
    let verifying =
        subtle.verify_with_object_and_js_u8_array_and_js_u8_array(&algorithm, &imported, &signature, &message);
    Awaited::from(verifying.ok()?).await.ok()?.as_bool()
}

async fn import(subtle: &SubtleCrypto, key: &VerificationKey, algorithm: &Object) -> Option<CryptoKey> {
    let jwk = Object::new();
    for (name, value) in key.public_members() {
        Reflect::set(&jwk, &name.into(), &value.into()).ok()?;
    }
    let uses = Array::of1(&"verify".into());
    let importing = subtle.import_key_with_object("jwk", &jwk, algorithm, false, &uses);
    Some(Awaited::from(importing.ok()?).await.ok()?.unchecked_into())
}

/// Returns the parameters of an algorithm for both `importKey` and `verify`; `None` only if the runtime fails to parse
/// them.
fn algorithm(algorithm: UserTokenAlgorithm) -> Option<Object> {
    let parameters = match algorithm {
        UserTokenAlgorithm::EdDSA => r#"{"name":"Ed25519"}"#,
        UserTokenAlgorithm::ES256 => r#"{"name":"ECDSA","namedCurve":"P-256","hash":"SHA-256"}"#,
        UserTokenAlgorithm::RS256 => r#"{"name":"RSASSA-PKCS1-v1_5","hash":"SHA-256"}"#,
    };
    JSON::parse(parameters).ok()?.dyn_into().ok()
}
