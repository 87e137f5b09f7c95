//! The program as a user meets it: every command and every exit code, driven from outside.
//!
//! Each test has a directory and a store of its own, so that they may run at the same time. What
//! needs root (mounts, loop devices, another user) says so and is left out elsewhere; in CI it must
//! run.
mod lab;
mod root;

mod allowed;
mod answers;
mod bad_input;
mod bad_options;
mod bad_places;
mod bad_store;
mod beforehand;
mod bench;
mod compare;
mod datasheets;
mod dirty;
mod exchange;
mod experiments;
mod first_steps;
mod imports;
mod interrupted;
mod layouts;
mod left_in_place;
mod memory;
mod models;
mod no_text;
mod outputs;
mod predictions;
mod prices;
mod printing;
mod quotas;
mod real;
mod real_places;
mod replaced;
mod replayed;
mod results;
mod rounds;
mod screens;
mod serve;
mod serve_faults;
mod shell;
mod syncs;
mod terminal;
mod together;
mod traces;
mod verified;
mod wrong_files;
