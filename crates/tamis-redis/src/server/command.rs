//! Registering commands, with all that `COMMAND INFO` and `COMMAND DOCS` tell of them.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null;

use super::api::{
    CommandArg, CommandFn, CommandInfo, CommandInfoVersion, KeyIndex, KeySpec, OK, api,
};
use super::{Ctx, c_text};
use crate::commands::COMMANDS;

/// What is known of a command.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// The words after the name: `key item... [EXPANSION expansion:int] [NONSCALING]`.
    pub(crate) syntax: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    /// Gives the function to call.
    pub(crate) entry: fn() -> CommandFn,
}

/// What a command does to its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads the key.
    Read,
    /// Changes the key, or makes it.
    Write,
    /// Changes the key, and needs no memory for that.
    Remove,
    /// Changes the first key, reads the others.
    Gather,
    /// Has no key.
    None,
}

impl Access {
    fn flags(self) -> &'static str {
        match self {
            Access::Read => "readonly fast",
            Access::Write | Access::Gather => "write deny-oom",
            Access::Remove => "write fast",
            Access::None => "fast",
        }
    }

    /// The server's own categories of access control.
    fn categories(self) -> &'static str {
        match self {
            Access::Read => "read fast",
            Access::Write | Access::Gather => "write slow",
            Access::Remove => "write fast",
            Access::None => "fast",
        }
    }

    /// First key, last key and step.
    fn keys(self) -> (c_int, c_int, c_int) {
        match self {
            Access::None => (0, 0, 0),
            Access::Gather => (1, -1, 1),
            _ => (1, 1, 1),
        }
    }

    /// Where keys are and what is done to them, with a zero entry at the end.
    fn key_specs(self) -> Vec<KeySpec> {
        const INDEX: c_int = 2;
        const RANGE: c_int = 2;
        const READ_ONLY: u64 = 1;
        const READ_WRITE: u64 = 1 << 1;
        const ACCESS: u64 = 1 << 4;
        const UPDATE: u64 = 1 << 5;
        const DELETE: u64 = 1 << 7;
        let spec = |position, flags, last| KeySpec {
            notes: null(),
            flags,
            begin_search: INDEX,
            begin: KeyIndex {
                position,
                unused: 0,
            },
            find_keys: RANGE,
            find: [last, 1, 0],
        };
        let mut specs = match self {
            Access::None => vec![],
            Access::Read => vec![spec(1, READ_ONLY | ACCESS, 0)],
            Access::Write => vec![spec(1, READ_WRITE | UPDATE | ACCESS, 0)],
            Access::Remove => vec![spec(1, READ_WRITE | DELETE | ACCESS, 0)],
            Access::Gather => vec![
                spec(1, READ_WRITE | UPDATE | ACCESS, 0),
                spec(2, READ_ONLY | ACCESS, -1),
            ],
        };
        specs.push(KeySpec {
            begin_search: 0,
            find_keys: 0,
            find: [0; 3],
            ..spec(0, 0, 0)
        });
        specs
    }
}

pub(super) fn register(ctx: Ctx) -> Result<(), String> {
    for family in ["bloom", "cuckoo", "tamis"] {
        if let Some(add) = api().add_acl_category {
            // A category that is there already is as good.
            // SAFETY: the context of the load; the text ends with a zero.
            unsafe { add(ctx.raw, c_text(family).as_ptr()) };
        }
    }
    COMMANDS
        .iter()
        .try_for_each(|command| command.register(ctx))
}

impl Command {
    fn register(&self, ctx: Ctx) -> Result<(), String> {
        let (name, flags) = (c_text(self.name), c_text(self.access.flags()));
        let (first, last, step) = self.access.keys();
        // SAFETY: the context of the load; texts end with a zero and are copied.
        let command = unsafe {
            (api().create_command)(
                ctx.raw,
                name.as_ptr(),
                (self.entry)(),
                flags.as_ptr(),
                first,
                last,
                step,
            );
            (api().get_command)(ctx.raw, name.as_ptr())
        };
        let refused = || Err(format!("the server refuses the command {}", self.name));
        if command.is_null() {
            return refused();
        }
        let syntax = Syntax::of(self.syntax);
        let (summary, since) = (c_text(self.summary), c_text(env!("CARGO_PKG_VERSION")));
        let args = syntax.args();
        let key_specs = self.access.key_specs();
        let version = CommandInfoVersion {
            version: 1,
            sizeof_history: 2 * size_of::<*const c_char>(),
            sizeof_keyspec: size_of::<KeySpec>(),
            sizeof_arg: size_of::<CommandArg>(),
        };
        let info = CommandInfo {
            version: &raw const version,
            summary: summary.as_ptr(),
            complexity: null(),
            since: since.as_ptr(),
            history: null::<c_void>(),
            tips: null(),
            arity: syntax.arity(),
            key_specs: key_specs.as_ptr(),
            args: args.as_ptr(),
        };
        // SAFETY: a registered command; the server copies all that `info` leads to.
        if unsafe { (api().set_command_info)(command, &raw const info) } != OK {
            return refused();
        }
        if let Some(set) = api().set_command_acl_categories {
            let family = match self.name.split('.').next() {
                Some("BF") => "bloom",
                Some("CF") => "cuckoo",
                _ => "tamis",
            };
            let categories = format!("{} {family}", self.access.categories());
            // SAFETY: a registered command; the text ends with a zero.
            unsafe { set(command, c_text(&categories).as_ptr()) };
        }
        Ok(())
    }
}

/// The words of a command after its name.
struct Syntax(Vec<Word>);

struct Word {
    name: CString,
    token: Option<CString>,
    kind: c_int,
    optional: bool,
    multiple: bool,
}

impl Syntax {
    /// Reads what [`Command::syntax`] shows.
    fn of(text: &str) -> Syntax {
        const STRING: c_int = 0;
        const INTEGER: c_int = 1;
        const DOUBLE: c_int = 2;
        const KEY: c_int = 3;
        const TOKEN: c_int = 6;
        let mut words = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = match rest.strip_prefix('[') {
                Some(inside) => inside.find(']').map_or(rest.len(), |at| at + 2),
                None => rest.find(' ').unwrap_or(rest.len()),
            };
            let (part, after) = rest.split_at(end);
            rest = after.trim_start();
            let optional = part.starts_with('[');
            let part = part.trim_matches(['[', ']']);
            let (token, argument) = match part.split_once(' ') {
                Some((token, argument)) => (Some(token), argument),
                None => (None, part),
            };
            let multiple = argument.ends_with("...");
            let argument = argument.trim_end_matches("...");
            let (argument, kind) = match argument.split_once(':') {
                Some((name, "int")) => (name, INTEGER),
                Some((name, _)) => (name, DOUBLE),
                None if argument == "key" || argument == "source" => (argument, KEY),
                None if optional && token.is_none() && argument == argument.to_uppercase() => {
                    (argument, TOKEN)
                }
                None => (argument, STRING),
            };
            let token = if kind == TOKEN { Some(argument) } else { token };
            words.push(Word {
                name: c_text(&argument.to_lowercase()),
                token: token.map(c_text),
                kind,
                optional,
                multiple,
            });
        }
        Syntax(words)
    }

    /// How many words a command has; negative where it may have more.
    fn arity(&self) -> c_int {
        let needed = self.0.iter().filter(|word| !word.optional);
        let tokens = |word: &Word| 1 + c_int::from(word.token.is_some());
        let words: c_int = 1 + needed.map(tokens).sum::<c_int>();
        let more = self.0.iter().any(|word| word.optional || word.multiple);
        if more { -words } else { words }
    }

    /// What the server reads, with an entry without a name at the end.
    fn args(&self) -> Vec<CommandArg> {
        let mut keys = -1;
        let mut arg = |word: &Word| {
            const KEY: c_int = 3;
            let key_spec = if word.kind == KEY {
                keys += 1;
                keys
            } else {
                -1
            };
            CommandArg {
                name: word.name.as_ptr(),
                kind: word.kind,
                key_spec,
                token: word.token.as_ref().map_or(null(), |token| token.as_ptr()),
                flags: c_int::from(word.optional) | c_int::from(word.multiple) << 1,
                ..END
            }
        };
        let mut args: Vec<CommandArg> = self.0.iter().map(&mut arg).collect();
        args.push(END);
        args
    }
}

const END: CommandArg = CommandArg {
    name: null(),
    kind: 0,
    key_spec: -1,
    token: null(),
    summary: null(),
    since: null(),
    flags: 0,
    deprecated_since: null(),
    subargs: std::ptr::null_mut(),
    display_text: null(),
};
