//! Keys: the claims of a token, and what a verified token proves.
