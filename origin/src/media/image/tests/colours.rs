//! Profiles and inks become sRGB.
