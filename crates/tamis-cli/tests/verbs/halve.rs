use tamis::KINDS;

use crate::common::{Room, numbers};

#[test]
fn a_folded_filter_holds_every_key_in_half_the_bytes() {
    let room = Room::new();
    room.put("keys.txt", numbers(0..5000));
    for kind in KINDS.iter().filter(|kind| kind.can.halve) {
        // The first capacity whose size can be halved twice.
        let folded = (50_000..50_200).find(|capacity| {
            let capacity = capacity.to_string();
            room.filter(
                "large",
                0..5000,
                &["--kind", kind.name, "--capacity", &capacity],
            );
            let halve = [
                "halve", "large", "-o", "small", "--force", "--times", "2", "--json",
            ];
            room.run(halve).0.status.success()
        });
        assert!(folded.is_some(), "{kind:?}");
        let info = |name: &str| room.run(["info", name, "--json"]).exits(0).json();
        let bytes = |name: &str| info(name)["bytes"].as_f64().unwrap();
        // Behind the last of its slots a table has up to 512 more, however many there are.
        let tail = match info("small")["shape"]["slots"].as_f64() {
            Some(slots) => 512.0 / slots,
            None => 0.0,
        };
        let times = bytes("large") / bytes("small");
        let least = 3.9 / (1.0 + tail);
        assert!((least..4.1).contains(&times), "{kind:?}: {times}");
        assert_eq!(info("small")["warnings"].as_array().unwrap().len(), 0);
        room.run(["check", "small", "keys.txt", "-c"])
            .exits(0)
            .prints("5000\n");
    }
}

#[test]
fn a_rate_says_how_far_to_go() {
    let room = Room::new();
    room.filter(
        "large",
        0..5000,
        &["--kind", "bloom", "--capacity", "65536"],
    );
    let halve = |fpr: &str| {
        let args = [
            "halve", "large", "-o", "small", "--force", "--json", "--fpr", fpr,
        ];
        room.run(args).exits(0).says_nothing().json()
    };
    let (strict, loose) = (halve("1e-9"), halve("0.02"));
    assert!(strict["fpr"].as_f64().unwrap() <= 1e-9 || strict["halved"] == 0);
    assert!(loose["halved"].as_u64() > strict["halved"].as_u64());
    assert!(loose["fpr"].as_f64().unwrap() <= 0.02, "{loose}");
    let halve = ["halve", "large", "-o", "small", "--force"];
    room.run(halve).exits(0).prints("").says_nothing();
    let said = room.run(halve.iter().chain(&["--verbose"])).exits(0);
    said.prints("").says(&["halved 1 time,"]);
}

#[test]
fn exit_codes() {
    let room = Room::new();
    room.filter("cuckoo", 0..10, &["--kind", "cuckoo"]);
    room.filter("bloom", 0..10, &["--kind", "bloom", "--capacity", "65536"]);
    room.run(["halve", "cuckoo", "-o", "f"])
        .exits(2)
        .says(&["a `cuckoo` cannot be halved", "`bloom`"]);
    room.run(["halve", "bloom", "-o", "f", "--times", "60"])
        .exits(2)
        .says(&["bits", "to be halved"]);
    room.run(["halve", "bloom", "-o", "bloom"])
        .exits(2)
        .says(&["--force"]);
    room.run(["halve", "bloom"]).exits(2);
    room.run(["halve", room.damaged(), "-o", "f"])
        .exits(3)
        .says(&["damaged: "]);
    room.run(["halve", "absent", "-o", "f"])
        .exits(4)
        .says(&["absent: "]);
    room.run(["halve", "bloom", "-o", "absent/f"])
        .exits(4)
        .says(&["absent/f: "]);
    assert!(!room.path("f").exists());
}
