//! The module for Redis and Valkey: `BF.*` and `CF.*` as clients know them, and `TAMIS.*` for every
//! filter of the library. `docs/REDIS.md` tells how to load and use it.
//!
//! A command goes this way: the server calls the function of its line in `commands`, which is in
//! `bloom`, `cuckoo`, `tamis_commands` or `chunks`; that opens a key, whose `value` holds
//! a filter of the library; changes it, in a thread if it is long work (`job`); tells replicas
//! what has changed; and replies. Only `server` talks to the server, and only there is `unsafe`.

mod bloom;
mod chunks;
mod commands;
mod cuckoo;
mod growth;
mod job;
mod loading;
mod options;
mod redisbloom;
mod server;
mod settings;
mod tamis_commands;
mod value;
mod windows;
