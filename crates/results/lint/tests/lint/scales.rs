//! Units with prefixes count wherever figures are compared, and the order of columns does not.

use lint::Rule;

fn rules(file: &str, text: &str) -> Vec<(Rule, String)> {
    let document = lint::read(file, text).unwrap_or_else(|it| panic!("{it}\n{text}"));
    let findings = lint::check(&document).into_iter();
    findings.map(|it| (it.rule, it.arithmetic)).collect()
}

fn mistake(text: &str) -> String {
    let mistakes = lint::read("t.toml", text).expect_err("a mistake");
    mistakes.to_string()
}

#[test]
fn a_mean_has_the_unit_of_its_cell_or_heading() {
    let csv = |heading: &str, mean: &str| {
        let text = format!(
            "# unit = \"Mbit/s\"\n# layer = \"L2\"\n# columns = \"frame\"\n# mean_frame_rate = \"{heading}\"\n\
             device,64,128,256,{heading}\nA,51.2,102.4,204.8,{mean}\n"
        );
        rules("t.csv", &text)
    };
    for (heading, mean) in [
        ("mean", "100000"),
        ("mean", "100 kpps"),
        ("mean", "100k"),
        ("mean [kpps]", "100"),
        ("mean [kpps]", "0.1M"),
        ("mean [kpps]", "100000 frames/s"),
    ] {
        assert_eq!(csv(heading, mean), [], "{heading}: {mean}");
    }
    let found = csv("mean [kpps]", "90.0");
    assert_eq!(found[0].0, Rule::MeanDiffers);
    assert!(found[0].1.contains("printed 90.0 kpps"), "{found:?}");
    let toml = |mean: &str| {
        format!(
            "[[table]]\nid = \"1\"\nunit = \"Mbit/s\"\nlayer = \"L2\"\nframe = [64, 128, 256]\n\
             figures = {{ A = [51.2, 102.4, 204.8] }}\nmean_frame_rate = {{ A = {mean} }}\n"
        )
    };
    assert_eq!(rules("t.toml", &toml("100000")), []);
    assert_eq!(rules("t.toml", &toml("\"100 kpps\"")), []);
    let shown = mistake(&toml("\"100 Mbit/s\""));
    assert!(shown.contains("is no frame rate, but in Mbit/s"), "{shown}");
}

#[test]
fn a_constant_frame_rate_is_found_in_any_order_of_sizes() {
    let sizes = [
        (64, "14.4"),
        (256, "168.0"),
        (512, "372.8"),
        (1518, "1177.6"),
    ];
    let found = |sizes: &[(u32, &str)]| {
        let frames: Vec<String> = sizes.iter().map(|it| it.0.to_string()).collect();
        let rates: Vec<&str> = sizes.iter().map(|it| it.1).collect();
        let text = format!(
            "[[table]]\nid = \"1\"\nunit = \"Mbit/s\"\nlayer = \"payload\"\ntransport = \"UDP\"\n\
             sender = \"software\"\nframe = [{}]\nfigures = {{ A = [{}] }}\n",
            frames.join(", "),
            rates.join(", "),
        );
        rules("t.toml", &text)
    };
    let rising = found(&sizes);
    assert_eq!(rising.len(), 1, "{rising:?}");
    assert_eq!(rising[0].0, Rule::ConstantFrameRate);
    let mut falling = sizes;
    falling.reverse();
    assert_eq!(found(&falling), rising);
    let [a, b, c, d] = sizes;
    assert_eq!(found(&[c, a, d, b]), rising);
}

#[test]
fn a_sum_adds_up_numbers_in_several_units() {
    let sum = |parts: &str, total: &str| {
        format!("[[sum]]\nwhat = \"both\"\nparts = [{parts}]\ntotal = {total}\n")
    };
    let both = "\"500 Mbit/s\", \"1.00 Gbit/s\"";
    assert_eq!(rules("t.toml", &sum(both, "\"1.5 Gbit/s\"")), []);
    assert_eq!(rules("t.toml", &sum("500, 1000", "\"1500 Mbit/s\"")), []);
    let found = rules("t.toml", &sum(both, "\"2.5 Gbit/s\""));
    let expected = "500 Mbit/s + 1.00 Gbit/s = 1.5, not 2.5 Gbit/s";
    assert_eq!(found, [(Rule::SumDiffers, expected.to_owned())]);
    let shown = mistake(&sum("\"500 Mbit/s\", \"3 ms\"", "\"503 Mbit/s\""));
    assert!(
        shown.contains("`3 ms` cannot be added up with Mbit/s"),
        "{shown}"
    );
}

#[test]
fn a_claim_compares_no_figures_of_two_scales() {
    let figures = |unit: &str| {
        format!(
            "[[figure]]\nid = \"a\"\nvalue = 1.5\nunit = \"Gbit/s\"\n[[figure]]\nid = \"b\"\nvalue = 0.9\n\
             unit = \"{unit}\"\n[[claim]]\nsays = \"faster\"\ntests = [\"{{a}} > {{b}}\"]\n"
        )
    };
    assert_eq!(rules("t.toml", &figures("Gbit/s")), []);
    let shown = mistake(&figures("Mbit/s"));
    assert!(
        shown.contains("the test mixes Mbit/s and Gbit/s"),
        "{shown}"
    );
}

#[test]
fn a_column_of_numbers_may_have_the_heading_of_keys() {
    for text in [
        "#,rate [Mbit/s]\n1,940\n2,941\n",
        "# unit = \"Mbit/s\"\n# columns = \"columns\"\n#;rate\n1;940\n2;941\n",
        "sep=|\n#|rate [Mbit/s]\n1|940\n2|941\n",
    ] {
        let document = lint::read("t.csv", text).unwrap_or_else(|it| panic!("{it}\n{text}"));
        let cells = document.tables[0].cells();
        let cells: Vec<_> = cells.map(|cell| (&*cell.row.name, cell.shown())).collect();
        let expected = [
            ("1", "940 Mbit/s".to_owned()),
            ("2", "941 Mbit/s".to_owned()),
        ];
        assert_eq!(cells, expected, "{text}");
    }
}
