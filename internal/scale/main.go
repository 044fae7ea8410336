// SPDX-License-Identifier: Apache-2.0

// Command scale measures what a manager of all controllers costs in a large cluster, in one process: a simulated API
// server with tenants, operators, copies and all that they consist of, and managers whose caches hold what a client
// decodes and controllers.Watched.Transform leaves.
//
//	go run ./internal/scale [--sizes 100,200,400] [--shards 1,2,8] [--json FILE] [--svg FILE] [--docs FILE]
//
// It prints a table. --docs puts that in the place of the one between the marks of a document.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "scale:", err)
		}
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	sizes := flags.String("sizes", "100,200,400", "numbers of tenants' namespaces, rising, each with 25 Subscriptions")
	shards := flags.String("shards", "1,2,8", "numbers of managers that share the largest size")
	asJSON := flags.String("json", "", "write the figures to a `file`")
	svg := flags.String("svg", "", "write a picture of them to a `file`")
	docs := flags.String("docs", "", "put the table in its place in a `file`")
	cpu := flags.String("cpuprofile", "", "write what the start of the manager of the largest size costs to a `file`, for go tool pprof")
	update := flags.String("updateprofile", "", "write what a published version costs it to a `file`, for go tool pprof")
	heap := flags.String("heapprofile", "", "write what the manager of the largest size holds to a `file`, for go tool pprof")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	tenants, err := numbers("sizes", *sizes)
	if err != nil {
		return err
	}
	parts, err := numbers("shards", *shards)
	if err != nil {
		return err
	}
	m := &measurement{size: full, progress: progress, heapProfile: *heap, startProfile: *cpu, updateProfile: *update}
	f, err := m.figures(ctx, tenants, parts)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, table(f)); err != nil {
		return err
	}
	if *asJSON != "" {
		data, err := json.MarshalIndent(f, "", "  ")
		if err == nil {
			err = os.WriteFile(*asJSON, append(data, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	if *svg != "" {
		if err := os.WriteFile(*svg, []byte(picture(f)), 0o644); err != nil {
			return err
		}
	}
	if *docs != "" {
		return rewrite(*docs, table(f))
	}
	return nil
}

// numbers reads a list that rises.
func numbers(flag, list string) (all []int, err error) {
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || len(all) > 0 && n <= all[len(all)-1] {
			return nil, fmt.Errorf("--%s %s: want numbers from 1 on that rise, such as 100,200,400", flag, list)
		}
		all = append(all, n)
	}
	return all, nil
}

// Marks between which a document has the table.
const beginMark, endMark = "<!-- scale: begin -->", "<!-- scale: end -->"

// rewrite puts a table between the marks of a document.
func rewrite(path, table string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(data), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %s and %s", path, beginMark, endMark)
	}
	return os.WriteFile(path, []byte(before+beginMark+"\n\n"+table+"\n"+endMark+after), 0o644)
}
