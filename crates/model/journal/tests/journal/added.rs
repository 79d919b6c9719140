//! Repeats that are added to cells.

use crate::fixture::{cell_id, header, measured};
use journal::record::Added;
use journal::{Journal, Record, Writer, read};

fn added(repeats: u32, cells: &[&str]) -> Record {
    Record::Added(Added {
        at_unix_ns: 1,
        repeats,
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
    })
}

#[test]
fn added_repeats_belong_to_the_plan_from_their_record_on() {
    let (header, cell) = (header(), cell_id(0));
    let planned = header.plan.repeats;
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), &header).unwrap();
    writer.append(&added(planned + 2, &[&cell])).unwrap();
    writer.append(&measured(0, planned + 2)).unwrap();
    drop(writer);
    let journal = read(dir.path()).unwrap();
    let plan = &journal.header.plan;
    assert_eq!(journal.added.len(), 1);
    assert_eq!(plan.repeats_of(&cell), planned + 2);
    assert_eq!(plan.repeats_of(&cell_id(1)), planned);
    let planned_trials = header.plan.trial_count();
    assert_eq!(plan.trial_count(), planned_trials + 2);
    assert_eq!(plan.trials().count(), planned_trials + 2);
    // What is written again has the header as the run began.
    assert_eq!(
        serde_json::to_value(plan).unwrap(),
        serde_json::to_value(&header.plan).unwrap()
    );
}

#[test]
fn repeats_without_their_record_and_records_without_a_cell_are_refused() {
    let (header, cell) = (header(), cell_id(0));
    let planned = header.plan.repeats;
    for (record, why) in [
        (measured(0, planned + 1), "is not planned"),
        (added(planned + 2, &[]), "added to no cell"),
        (added(planned + 2, &["y"]), "is not in the plan"),
        (added(planned - 1, &[&cell]), "are none more"),
        (added(5000, &[&cell]), "are none more"),
    ] {
        let error = Journal::new(header.clone()).accept(record).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
