//! The watching of children, on programs that fail in one chosen way each. One module a way.

mod addresses;
mod callbacks;
mod cores;
mod descendants;
mod descriptors;
mod handlers;
mod leaving;
mod signals;
mod stopping;
mod threads;
mod untraced;
mod victim;
mod worker;
