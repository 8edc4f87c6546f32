//! The watching of children, on programs that fail in one chosen way each. One module a way.

mod addresses;
mod callbacks;
mod cores;
mod descendants;
mod descriptors;
mod endurance;
mod handlers;
mod leaving;
mod real_driver;
mod signals;
mod stopping;
mod supervisor_dies;
mod threads;
mod untraced;
mod victim;
mod worker;
