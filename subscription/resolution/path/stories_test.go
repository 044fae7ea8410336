// SPDX-License-Identifier: Apache-2.0

package path_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
	"github.com/olmcore/olm/subscription/resolution/path"
)

// TestStories runs testdata: questions about a namespace that resolves against published catalogs, or against the
// small ones beside the stories.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if strings.Contains(string(text), "\npublished ") {
				realdata.Dir(t)
			}
			s := newStory(t)
			require.NoError(t, scenario.Run(file, scenario.Config{Commands: s.commands()}))
		})
	}
}

// story is the namespace of one file.
type story struct {
	t        testing.TB
	in       resolution.Input
	packages map[string]*resolution.Bundle
}

func (s *story) commands() map[string]scenario.Command {
	quiet := func(f func(args []string) error) scenario.Command {
		return func(_ *scenario.World, args []string, _ []byte) (string, error) { return "", f(args) }
	}
	return map[string]scenario.Command{
		// published CATALOG, catalog FILE: global/community has this content.
		"published": quiet(func(args []string) error {
			return s.load(filepath.Join(realdata.Dir(s.t), "catalogs", args[0]+".fbc.jsonl.gz"))
		}),
		"catalog": quiet(func(args []string) error { return s.load(filepath.Join("testdata", args[0])) }),
		// subscribe NAME PACKAGE [CHANNEL] [has=CSV] [range=RANGE] [approval=Manual]
		"subscribe": quiet(s.subscribe),
		// installed CSV: it exists, and belongs to no Subscription.
		"installed": quiet(func(args []string) error { return s.install(args[0]) }),
		"resolve":   func(*scenario.World, []string, []byte) (string, error) { return s.resolve(), nil },
		// path [NAME] [to=CSV] [across] [as=mermaid|dot|json]
		"path": func(_ *scenario.World, args []string, _ []byte) (string, error) { return s.path(args) },
		// whatif CHANGE...: channel=NAME:CHANNEL range=NAME:RANGE adopt=NAME:CSV remove=NAME delete=CSV catalog=FILE
		"whatif": func(_ *scenario.World, args []string, _ []byte) (string, error) { return s.whatif(args) },
	}
}

func (s *story) load(file string) error {
	content, err := s.read(file)
	if err == nil {
		s.in.Catalogs = []resolution.CatalogState{{Key: community, Content: content}}
	}
	return err
}

var community = types.NamespacedName{Namespace: "global", Name: "community"}

func (s *story) read(file string) (*resolution.Catalog, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	packages, _, err := fbc.Read(file, f, fbc.Options{Strict: true})
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		for i := range p.Bundles {
			s.packages[p.Bundles[i].Name] = &p.Bundles[i]
		}
	}
	content, _ := resolution.Build(packages)
	return content, nil
}

func (s *story) subscribe(args []string) error {
	sub := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: args[0], CreationTimestamp: metav1.Unix(int64(len(s.in.Subscriptions)), 0)}}
	sub.Spec = &v1alpha1.SubscriptionSpec{Package: args[1], CatalogSource: community.Name, CatalogSourceNamespace: community.Namespace}
	for _, arg := range args[2:] {
		key, value, option := strings.Cut(arg, "=")
		switch {
		case !option:
			sub.Spec.Channel = arg
		case key == "has":
			sub.Status.CurrentCSV, sub.Status.InstalledCSV = value, value
			if err := s.install(value); err != nil {
				return err
			}
		case key == "range":
			sub.Annotations = map[string]string{resolution.AnnotationVersionRange: strings.ReplaceAll(value, "_", " ")}
		case key == "approval":
			sub.Spec.InstallPlanApproval = v1alpha1.Approval(value)
		}
	}
	s.in.Subscriptions = append(s.in.Subscriptions, sub)
	return nil
}

func (s *story) install(name string) error {
	bundle := s.packages[name]
	if bundle == nil {
		return fmt.Errorf("no catalog has %s", name)
	}
	csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	csv.Status.Phase = v1alpha1.CSVPhaseSucceeded
	text, err := json.Marshal(map[string]any{"properties": bundle.Properties})
	if err != nil {
		return err
	}
	csv.Annotations = map[string]string{"operatorframework.io/properties": string(text)}
	for _, p := range bundle.Properties {
		var v struct{ Version string }
		if p.Type == resolution.PropertyPackage && json.Unmarshal(p.Value, &v) == nil {
			csv.Spec.Version.Version = semver.MustParse(v.Version)
		}
	}
	s.in.CSVs = append(s.in.CSVs, csv)
	return nil
}

func (s *story) resolve() string {
	res := resolution.Resolve(s.in)
	var lines []string
	for _, op := range res.Operators {
		lines = append(lines, "install "+op.Name)
	}
	for _, h := range res.HeldBack {
		lines = append(lines, h.Summary)
	}
	for _, c := range res.Cores {
		lines = append(lines, c.Summary)
	}
	for _, d := range res.Diagnostics {
		lines = append(lines, d.Reason+": "+d.Message)
	}
	return strings.Join(append(lines, string(res.Outcome)), "\n")
}

func (s *story) path(args []string) (string, error) {
	q, as := path.Question{Input: s.in}, ""
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "to":
			q.Target = value
		case "across":
			q.AcrossChannels = true
		case "as":
			as = value
		default:
			q.Subscription = arg
		}
	}
	found, err := path.Find(q)
	if err != nil {
		return "", err
	}
	switch as {
	case "mermaid":
		return found.Mermaid(), nil
	case "dot":
		return found.DOT(), nil
	case "json":
		text, err := json.MarshalIndent(found, "", " ")
		return string(text), err
	}
	return shortened(found.String()), nil
}

// shortened leaves out the middle of long ways.
func shortened(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 24 {
		lines = slices.Concat(lines[:12], []string{fmt.Sprintf("     ... %d lines more", len(lines)-18)}, lines[len(lines)-6:])
	}
	return strings.Join(lines, "\n")
}

func (s *story) whatif(args []string) (string, error) {
	var changes []resolution.Change
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		name, what, _ := strings.Cut(value, ":")
		switch key {
		case "channel":
			changes = append(changes, resolution.Change{Subscription: name, Channel: what})
		case "range":
			what = strings.ReplaceAll(what, "_", " ")
			changes = append(changes, resolution.Change{Subscription: name, VersionRange: &what})
		case "adopt":
			changes = append(changes, resolution.Change{Subscription: name, Adopt: what})
		case "remove":
			changes = append(changes, resolution.Change{Subscription: name, Remove: true})
		case "delete":
			changes = append(changes, resolution.Change{DeleteCSV: value})
		case "catalog":
			content, err := s.read(filepath.Join("testdata", value))
			if err != nil {
				return "", err
			}
			changes = append(changes, resolution.Change{Content: &resolution.CatalogState{Key: community, Content: content}})
		}
	}
	d, err := resolution.WhatIf(s.in, changes...)
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("%s -> %s", d.Before.Outcome, d.After.Outcome)}
	for _, x := range d.Subscriptions {
		lines = append(lines, fmt.Sprintf("%s: %s -> %s", x.Subscription, standing(x.Before), standing(x.After)))
	}
	for _, op := range d.Dropped {
		lines = append(lines, "no longer installed: "+op.Name)
	}
	for _, op := range d.Added {
		lines = append(lines, "installed: "+op.Name)
	}
	return strings.Join(lines, "\n"), nil
}

func standing(s resolution.Standing) string {
	text := s.Target.Target
	if text == "" {
		text = "nothing"
	}
	if s.HeldBack != nil {
		text += " (" + s.HeldBack.Summary + ")"
	}
	if s.Failure != "" {
		text += " (" + s.Failure + ")"
	}
	return text
}
