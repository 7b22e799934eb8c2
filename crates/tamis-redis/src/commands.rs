//! The one list of commands: what each is called, takes, does, and which function answers it.

use crate::server::command::{Access, Command};
use crate::server::{Call, Handler, Refusal, entry};
use crate::{bloom, chunks, cuckoo, tamis_commands as tamis};

/// A type for each command, so that the server gets a function for each.
macro_rules! commands {
    ($($handler:ident = $function:path: $name:literal $syntax:literal, $access:ident, $summary:literal;)*) => {
        $(
            struct $handler;

            impl Handler for $handler {
                fn run(call: &Call<'_>) -> Result<(), Refusal> {
                    $function(call)
                }
            }
        )*

        /// Every command.
        pub(crate) static COMMANDS: &[Command] = &[$(Command {
            name: $name,
            syntax: $syntax,
            summary: $summary,
            access: Access::$access,
            entry: entry::<$handler>,
        },)*];
    };
}

commands! {
    BfReserve = bloom::reserve: "BF.RESERVE" "key error_rate:num capacity:int [EXPANSION expansion:int] [NONSCALING] [TIGHTENING ratio] [SEED seed:int] [SECRET secret]",
        Write, "Creates an empty Bloom filter for so many items at this error rate";
    BfAdd = bloom::add: "BF.ADD" "key item",
        Write, "Adds an item to a Bloom filter, which is created if there is none";
    BfMadd = bloom::add_many: "BF.MADD" "key item...",
        Write, "Adds items to a Bloom filter, which is created if there is none";
    BfInsert = bloom::insert_many: "BF.INSERT" "key [CAPACITY capacity:int] [ERROR error:num] [EXPANSION expansion:int] [NOCREATE] [NONSCALING] [TIGHTENING ratio] [SEED seed:int] [SECRET secret] [VALIDATESCALETO capacity:int] [ITEMS item...]",
        Write, "Adds items to a Bloom filter, which is created as described if there is none";
    BfExists = bloom::exists: "BF.EXISTS" "key item",
        Read, "Tells whether an item may be in a filter";
    BfMexists = bloom::exist_many: "BF.MEXISTS" "key item...",
        Read, "Tells of each item whether it may be in a filter";
    BfCard = bloom::card: "BF.CARD" "key",
        Read, "Tells how many items were added to a Bloom filter and seemed new";
    BfInfo = bloom::info: "BF.INFO" "key [field]",
        Read, "Tells what a Bloom filter is and holds";
    BfDebug = bloom::debug: "BF.DEBUG" "key",
        Read, "Tells how many items a Bloom filter has, and in what";
    BfScandump = chunks::scan_bloom: "BF.SCANDUMP" "key iterator:int",
        Read, "Gives a Bloom filter away, chunk by chunk";
    BfLoadchunk = chunks::load_bloom: "BF.LOADCHUNK" "key iterator:int data",
        Write, "Takes a Bloom filter in, chunk by chunk";
    BfLoad = chunks::load_whole: "BF.LOAD" "key data",
        Write, "Takes a Bloom filter in at once";

    CfReserve = cuckoo::reserve: "CF.RESERVE" "key capacity:int [BUCKETSIZE bucketsize:int] [MAXITERATIONS maxiterations:int] [EXPANSION expansion:int] [ERROR error:num] [SEED seed:int] [SECRET secret]",
        Write, "Creates an empty filter that items can leave";
    CfAdd = cuckoo::add: "CF.ADD" "key item",
        Write, "Adds an item, or one more copy of it";
    CfAddnx = cuckoo::add_new: "CF.ADDNX" "key item",
        Write, "Adds an item unless it seems to be there";
    CfInsert = cuckoo::insert_many: "CF.INSERT" "key [CAPACITY capacity:int] [ERROR error:num] [NOCREATE] [ITEMS item...]",
        Write, "Adds items, or one more copy of each";
    CfInsertnx = cuckoo::insert_new: "CF.INSERTNX" "key [CAPACITY capacity:int] [ERROR error:num] [NOCREATE] [ITEMS item...]",
        Write, "Adds those items that do not seem to be there";
    CfExists = bloom::exists: "CF.EXISTS" "key item",
        Read, "Tells whether an item may be in a filter";
    CfMexists = bloom::exist_many: "CF.MEXISTS" "key item...",
        Read, "Tells of each item whether it may be in a filter";
    CfCount = cuckoo::count: "CF.COUNT" "key item",
        Read, "Tells how many copies of an item there may be";
    CfDel = cuckoo::remove: "CF.DEL" "key item",
        Remove, "Takes out one copy of an item that was added";
    CfInfo = cuckoo::info: "CF.INFO" "key",
        Read, "Tells what a filter is and holds";
    CfScandump = chunks::scan_cuckoo: "CF.SCANDUMP" "key iterator:int",
        Read, "Gives a filter away, chunk by chunk";
    CfLoadchunk = chunks::load_cuckoo: "CF.LOADCHUNK" "key iterator:int data",
        Write, "Takes a filter in, chunk by chunk";

    TamisCreate = tamis::create: "TAMIS.CREATE" "key [KIND kind] [CONFIG config] [CAPACITY capacity:int] [ERROR error:num] [WINDOW span] [LAST items:int] [PARAM name] [SEED seed:int] [SECRET secret] [CLOCK milliseconds:int]",
        Write, "Creates an empty filter of any kind, or a window";
    TamisAdd = tamis::add: "TAMIS.ADD" "key item...",
        Write, "Adds items";
    TamisRem = tamis::remove: "TAMIS.REM" "key item...",
        Remove, "Takes out one copy of each item";
    TamisHas = tamis::has: "TAMIS.HAS" "key item...",
        Read, "Tells of each item whether it may be in a filter";
    TamisCount = tamis::count: "TAMIS.COUNT" "key item...",
        Read, "Tells how many copies of each item there may be";
    TamisGet = tamis::get: "TAMIS.GET" "key item...",
        Read, "Gives the value of each item of a map";
    TamisCard = tamis::card: "TAMIS.CARD" "key",
        Read, "Tells how many items were added";
    TamisInfo = tamis::info: "TAMIS.INFO" "key",
        Read, "Tells what a filter is and holds";
    TamisMerge = tamis::merge: "TAMIS.MERGE" "key source...",
        Gather, "Takes filters of one kind and shape into another";
    TamisResize = tamis::resize: "TAMIS.RESIZE" "key size",
        Write, "Halves a filter, at a higher error rate";
    TamisDump = chunks::dump: "TAMIS.DUMP" "key position:int [COUNT bytes:int]",
        Read, "Gives the file of a filter away, chunk by chunk";
    TamisLoad = chunks::load: "TAMIS.LOAD" "key position:int data",
        Write, "Takes the file of a filter in, chunk by chunk";
    TamisAdvise = tamis::advice: "TAMIS.ADVISE" "keys:int error_rate:num [FIXED] [REMOVE] [COUNT copies:int] [MERGE] [HALVE] [MAP] [GROW] [WINDOW]",
        None, "Suggests a kind for what is needed";
    TamisApply = tamis::apply: "TAMIS.APPLY" "key clock:int change [items item...]",
        Write, "Replicates a change of a window; not for clients";
}
