// Reads dashboards by the types that Grafana generates from its own schemas, strictly: an unknown field, a missing one, a
// wrong type or value is an error, in the dashboard, in the options of each kind of panel and in the queries.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// found is the error of a check, if it has any: the generated code also returns an empty list.
func found(err error) error {
	if list, isList := err.(cog.BuildErrors); isList && len(list) == 0 {
		return nil
	}
	return err
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var read dashboard.Dashboard
	if err := found(read.UnmarshalJSONStrict(text)); err != nil {
		return err
	}
	if err := found(read.Validate()); err != nil {
		return err
	}
	// These readers drop panels and queries, as they take an empty list of errors for an error: each is read by itself.
	var parts struct{ Panels []json.RawMessage }
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	queries := 0
	for number, part := range parts.Panels {
		var kind struct {
			Type    string
			Targets []json.RawMessage
		}
		if err := json.Unmarshal(part, &kind); err != nil || kind.Type == "row" {
			continue
		}
		var panel dashboard.Panel
		if err := found(panel.UnmarshalJSONStrict(part)); err != nil {
			return fmt.Errorf("panel %d: %w", number, err)
		}
		if err := found(panel.Validate()); err != nil {
			return fmt.Errorf("panel %d: %w", number, err)
		}
		for _, target := range kind.Targets {
			var query prometheus.Dataquery
			if err := found(query.UnmarshalJSONStrict(target)); err != nil {
				return fmt.Errorf("panel %d: %w", number, err)
			}
			if err := found(query.Validate()); err != nil {
				return fmt.Errorf("panel %d: %w", number, err)
			}
			queries++
		}
	}
	fmt.Printf("%s: valid, %d panels and rows with %d queries\n", path, len(parts.Panels), queries)
	return nil
}

func main() {
	plugins.RegisterDefaultPlugins()
	failed := false
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			failed = true
		}
	}
	if failed || len(os.Args) < 2 {
		os.Exit(1)
	}
}
