package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// bound is what was aimed at.
type bound struct {
	ratio bool // of Varve's value to Kafka's; else Varve's value alone
	least bool // at least limit; else at most
	limit float64
}

func timesAtLeast(x float64) bound { return bound{ratio: true, least: true, limit: x} }
func timesAtMost(x float64) bound  { return bound{ratio: true, limit: x} }
func atMost(x float64) bound       { return bound{limit: x} }

func (b bound) met(kafka, varve float64) bool {
	v := varve
	if b.ratio {
		if kafka <= 0 || varve <= 0 {
			return false // not measured: a run too short for the clock, or another process's CPU
		}
		v = varve / kafka
	}
	if b.least {
		return v >= b.limit
	}
	return v <= b.limit
}

func (b bound) String() string {
	sign, times := "≤", ""
	if b.least {
		sign = "≥"
	}
	if b.ratio {
		times = " ×"
	}
	return fmt.Sprintf("%s %.3g%s", sign, b.limit, times)
}

// none stands where a side has no value: the peer has no such thing.
const none = -1

// row is one measurement of both.
type row struct {
	what, unit   string
	kafka, varve float64
	aim          *bound
}

// table collects rows and prints them at the end, aligned, and readable as
// Markdown.
type table struct {
	out  io.Writer
	rows []row
}

func newTable(out io.Writer) *table { return &table{out: out} }

// add takes a measurement that something was aimed at.
func (t *table) add(what, unit string, kafka, varve float64, aim bound) {
	t.rows = append(t.rows, row{what, unit, kafka, varve, &aim})
	progress("  %s: %s against %s %s", what, number(varve), number(kafka), unit)
}

// note takes one that stands for information.
func (t *table) note(what, unit string, kafka, varve float64) {
	t.rows = append(t.rows, row{what, unit, kafka, varve, nil})
	progress("  %s: %s against %s %s", what, number(varve), number(kafka), unit)
}

func (t *table) print() {
	w := tabwriter.NewWriter(t.out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| measured\t| unit\t| Kafka, or as named\t| Varve\t| ratio\t| aim\t| met\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, r := range t.rows {
		ratio, aim, met := "", "", ""
		if r.kafka > 0 && r.varve != none {
			ratio = fmt.Sprintf("%.2f", r.varve/r.kafka)
		}
		if r.aim != nil {
			aim, met = r.aim.String(), "NO"
			if r.aim.met(r.kafka, r.varve) {
				met = "yes"
			}
		}
		fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", r.what, r.unit, number(r.kafka), number(r.varve), ratio, aim, met)
	}
	w.Flush()
}

// number prints three digits or more.
func number(v float64) string {
	switch {
	case v == none:
		return "–"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}
