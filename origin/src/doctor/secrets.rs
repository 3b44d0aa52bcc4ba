//! Tells from a column's name whether the column may hold a secret.

/// Names of columns with secrets, as lower-case words. A column's name looks like a secret if it contains the words of
/// an entry one after the other, the last one perhaps with an `s`: `reset_token` and `apiTokens` do, `tokenised_at`
/// does not. Joined words count too: `apikey`.
const SECRETS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "pw",
    "pin",
    "secret",
    "token",
    "salt",
    "otp",
    "totp",
    "mfa",
    "api key",
    "private key",
    "access key",
    "encryption key",
    "recovery code",
    "credit card",
    "card number",
    "cvc",
    "cvv",
    "ssn",
    "social security",
    "iban",
    "bank account",
    "tax id",
    "passport",
];

pub(super) fn is_secret(column: &str) -> bool {
    let words = words(column);
    SECRETS.iter().any(|secret| {
        let joined = secret.replace(' ', "");
        // Joins the column's words from each starting word on, and compares each result with the secret's joined words.
        (0..words.len()).any(|start| {
            let mut found = String::new();
            words[start..].iter().any(|word| {
                found.push_str(word);
                found == joined || found.strip_suffix('s') == Some(&joined)
            })
        })
    })
}

/// Splits a name into words: `user_apiKey2` becomes `user`, `api`, `key`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphabetic() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if c.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_named_like_a_secret_by_its_words() {
        for name in [
            "password",
            "password_hash",
            "PasswordHash",
            "user_pass",
            "pwd_hash",
            "passwd",
            "resetToken",
            "api_tokens",
            "api_key",
            "apikey",
            "ApiKey",
            "API_KEY2",
            "private-key",
            "credit_card_no",
            "CreditCardNumber",
            "iban",
            "SSN",
            "card pin",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["id", "title", "shipping", "tokenised_at", "compass", "key", "passage", "card", "opinion", "", "_"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }
}
