use tamis::KINDS;

use crate::common::Room;

#[test]
fn the_table_says_what_the_library_says() {
    let room = Room::new();
    let json = room.run(["kinds", "--json"]).exits(0).json();
    let text = room.run(["kinds"]).exits(0).stdout();
    for (kind, listed) in KINDS.iter().zip(json.as_array().unwrap()) {
        assert_eq!(listed["kind"], kind.name);
        assert_eq!(listed["grow"], kind.grows());
        assert_eq!(listed["fold"], kind.halves());
        assert_eq!(listed["window"], kind.window);
        assert_eq!(listed["copies"], kind.copies());
        let row = text
            .lines()
            .find(|l| l.split_whitespace().next() == Some(kind.name));
        let cells: Vec<_> = row.unwrap().split_whitespace().skip(1).take(7).collect();
        assert_eq!(cells[4] == "yes", kind.grows(), "{cells:?}");
        assert_eq!(cells[6] == "yes", kind.window, "{cells:?}");
    }
    room.run(["kinds", "extra"]).exits(2);
}
