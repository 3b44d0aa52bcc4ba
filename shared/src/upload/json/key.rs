//! The keys of an upload's JSON and of its items, and which keys belong together.

use crate::error::nearest;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Body,
    Item,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Items,
    Text,
    TextIfAny,
    FlagIfAny,
    Content,
}

impl fmt::Display for Wants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Items => "a list of items",
            Self::Text | Self::TextIfAny => "a text",
            Self::FlagIfAny => "true or false",
            Self::Content => "a text of base64",
        })
    }
}

macro_rules! keys {
    ($($variant:ident = $word:literal, $levels:expr, $wants:ident, $family:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum BodyKey { $($variant,)* }

        impl BodyKey {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub(super) const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            fn levels(self) -> &'static [Level] {
                match self { $(Self::$variant => $levels,)* }
            }

            pub(super) const fn wants(self) -> Wants {
                match self { $(Self::$variant => Wants::$wants,)* }
            }

            pub(super) const fn family(self) -> Option<Family> {
                match self { $(Self::$variant => $family,)* }
            }
        }
    };
}

keys! {
    Media = "media", &[Level::Body], Items, None;
    Folder = "folder", &[Level::Body], TextIfAny, None;
    Type = "type", &[Level::Body], Text, None;
    Update = "update", &[Level::Body], FlagIfAny, None;
    Private = "private", &[Level::Body, Level::Item], FlagIfAny, None;
    PrivateFolder = "privateFolder", &[Level::Item], FlagIfAny, None;
    Name = "name", &[Level::Item], Text, Some(Family::Named);
    Base64 = "base64", &[Level::Item], Content, Some(Family::Named);
    ImageBase64 = "imageBase64", &[Level::Item], Content, Some(Family::Image);
    ImageName = "imageName", &[Level::Item], Text, Some(Family::Image);
    ImageType = "imageType", &[Level::Item], Text, Some(Family::Image);
    FileBase64 = "fileBase64", &[Level::Item], Content, Some(Family::File);
    FileName = "fileName", &[Level::Item], Text, Some(Family::File);
    FileType = "fileType", &[Level::Item], Text, Some(Family::File);
}

impl BodyKey {
    pub(super) fn parse(level: Level, text: &str) -> Option<Self> {
        Self::of(level).find(|key| key.as_str() == text)
    }

    pub(super) fn hint(level: Level, text: &str) -> String {
        match nearest(text, Self::of(level).map(Self::as_str)) {
            Some(near) => format!("Did you mean {near}?"),
            None => {
                let known: Vec<_> = Self::of(level).map(Self::as_str).collect();
                format!("Known are {}.", known.join(", "))
            }
        }
    }

    fn of(level: Level) -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(move |key| key.levels().contains(&level))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Named,
    Image,
    File,
}

impl Family {
    pub(super) fn keys(self) -> &'static [BodyKey] {
        match self {
            Self::Named => &[BodyKey::Name, BodyKey::Base64],
            Self::Image => &[BodyKey::ImageName, BodyKey::ImageType, BodyKey::ImageBase64],
            Self::File => &[BodyKey::FileName, BodyKey::FileType, BodyKey::FileBase64],
        }
    }

    pub(super) fn name(self) -> BodyKey {
        match self {
            Self::Named => BodyKey::Name,
            Self::Image => BodyKey::ImageName,
            Self::File => BodyKey::FileName,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.keys().iter().map(|key| key.as_str()).collect();
        write!(f, "{{{}}}", words.join(", "))
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct KeySet(u16);

impl KeySet {
    pub(super) fn insert(&mut self, key: BodyKey) -> bool {
        let is_new = !self.contains(key);
        self.0 |= 1 << key as u16;
        is_new
    }

    pub(super) fn contains(self, key: BodyKey) -> bool {
        self.0 & 1 << key as u16 != 0
    }
}
