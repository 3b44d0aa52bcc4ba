//! The tables of the databases, as their keys may use them. Written by Selkie: write it again after a change of tables.

use serde::{Deserialize, Serialize};

/// An integer, which answers have as digits if it is beyond ±(2^53−1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Integer {
    Number(i64),
    Digits(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopAuthors {
    pub id: i64,
    pub name: String,
    pub mentor_id: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopAuthorsInsert {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mentor_id: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopAuthorsUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mentor_id: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopKeyless {
    pub word: Option<String>,
    pub id2: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopKeylessInsert {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id2: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopKeylessUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id2: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopKinds {
    pub id: i64,
    pub tiny: Option<i64>,
    pub big: Option<Integer>,
    pub flags: Option<i64>,
    pub wide: Option<Integer>,
    pub exact: Option<String>,
    pub whole: Option<String>,
    pub near: Option<f64>,
    pub near_too: Option<f64>,
    pub letters: Option<String>,
    pub words: Option<String>,
    pub choice: Option<String>,
    pub code: Option<String>,
    pub address: Option<String>,
    pub old_address: Option<String>,
    pub day: Option<String>,
    pub at: Option<String>,
    pub stamp: Option<String>,
    pub span: Option<String>,
    pub born: Option<i64>,
    pub extra: Option<serde_json::Value>,
    pub bytes: Option<String>,
    pub place: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopKindsInsert {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiny: Option<Option<i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub big: Option<Option<Integer>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<Option<i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wide: Option<Option<Integer>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<Option<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_too: Option<Option<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_address: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<Option<i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Option<serde_json::Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Option<serde_json::Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopKindsUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiny: Option<Option<i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub big: Option<Option<Integer>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<Option<i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wide: Option<Option<Integer>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<Option<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_too: Option<Option<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_address: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<Option<i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Option<serde_json::Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Option<serde_json::Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopOddNames {
    #[serde(rename = "the key")]
    pub the_key: String,
    pub class: Option<i64>,
    #[serde(rename = "a-b")]
    pub a_b: Option<i64>,
    #[serde(rename = "größe")]
    pub gr_e: Option<i64>,
    #[serde(rename = "1st")]
    pub field_1st: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopOddNamesInsert {
    #[serde(rename = "the key")]
    pub the_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Option<i64>>,
    #[serde(rename = "a-b")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a_b: Option<Option<i64>>,
    #[serde(rename = "größe")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gr_e: Option<Option<i64>>,
    #[serde(rename = "1st")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_1st: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopOddNamesUpdate {
    #[serde(rename = "the key")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub the_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Option<i64>>,
    #[serde(rename = "a-b")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a_b: Option<Option<i64>>,
    #[serde(rename = "größe")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gr_e: Option<Option<i64>>,
    #[serde(rename = "1st")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_1st: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopPostTags {
    pub post_id: Integer,
    pub tag_id: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopPostTagsInsert {
    pub post_id: Integer,
    pub tag_id: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopPostTagsUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_id: Option<Integer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag_id: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TypedShopPostsState {
    #[serde(rename = "draft")]
    Draft,
    #[serde(rename = "out")]
    Out,
    #[serde(rename = "it's \"off\"")]
    ItSOff,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopPosts {
    pub id: Integer,
    pub author_id: i64,
    pub title: String,
    pub body: Option<String>,
    pub price: String,
    pub views: i64,
    pub doubled: Option<i64>,
    pub state: TypedShopPostsState,
    pub secret_note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopPostsInsert {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Integer>,
    pub author_id: i64,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub views: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TypedShopPostsState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_note: Option<Option<String>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopPostsUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Integer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub views: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TypedShopPostsState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_note: Option<Option<String>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopTags {
    pub id: i64,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopTagsInsert {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopTagsUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedShopTotals {
    pub author_id: i64,
    pub posts: Integer,
    pub worth: Option<String>,
}
