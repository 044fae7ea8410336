// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// differs says what changes make of an answer, a line for each fact.
func differs(d resolution.Difference) (text string) {
	for _, s := range d.Subscriptions {
		text += fmt.Sprintf("%s: %s -> %s\n", s.Subscription, stands(s.Before), stands(s.After))
	}
	for _, op := range d.Added {
		text += "+ " + op.Name + "\n"
	}
	for _, op := range d.Dropped {
		text += "- " + op.Name + "\n"
	}
	return text
}

func stands(s resolution.Standing) string {
	text := or(s.Target.Target)
	if s.HeldBack != nil {
		text += " (" + string(s.HeldBack.Code) + ")"
	}
	if s.Failure != "" {
		text += " (failed)"
	}
	return text
}

func TestWhatIf(t *testing.T) {
	lines := append(chain(), line("a/beta", "a4", "a3"), line("b/stable", "b1", "", requires("K")))
	other, _ := content(line("k/stable", "k1", "", provides("K")))
	stable := func() *world {
		return newWorld(lines...).sub("a/stable", has("a3")).csv("a", "a3", nil).sub("b/stable")
	}
	catalog := types.NamespacedName{Namespace: "global", Name: "more"}
	for name, c := range map[string]struct {
		world  *world
		change resolution.Change
		want   string
	}{
		"nothing":         {stable(), resolution.Change{}, ""},
		"another channel": {stable(), resolution.Change{Subscription: "a", Channel: "beta"}, "a: a3 -> a4\n+ a4\n"},
		"one more catalog": {stable(), resolution.Change{Content: &resolution.CatalogState{Key: catalog, Content: other}},
			"b: nothing (failed) -> b1\n+ b1\n+ k1\n"},
		"a catalog without content": {newWorld(lines...).sub("a/stable"), resolution.Change{Content: &resolution.CatalogState{Key: types.NamespacedName{Namespace: "global", Name: "cat"}, Problem: "away"}},
			"a: a3 -> nothing (failed)\n- a3\n"},
		"another catalog": {newWorld(lines...).sub("a/stable"), resolution.Change{Subscription: "a", Catalog: catalog}, "a: a3 -> nothing (failed)\n- a3\n"},
		"another package": {newWorld(lines...).sub("a/stable", starting("a1")), resolution.Change{Subscription: "a", Package: "b", Channel: "stable"}, "a: a1 -> nothing (failed)\n- a1\n"},
		"no startingCSV":  {newWorld(lines...).sub("a/stable", starting("a1")), resolution.Change{Subscription: "a", StartingCSV: new("")}, "a: a1 -> a3\n+ a3\n- a1\n"},
		"a version range": {newWorld(lines...).sub("a/stable"), resolution.Change{Subscription: "a", VersionRange: new("<3.0.0")}, "a: a3 -> a2 (Pinned)\n+ a2\n- a3\n"},
		"no version range": {newWorld(lines...).sub("a/stable", within("<3.0.0")), resolution.Change{Subscription: "a", VersionRange: new("")},
			"a: a2 (Pinned) -> a3\n+ a3\n- a2\n"},
		"a ClusterServiceVersion deleted": {newWorld(lines...).sub("a/stable").csv("a", "a3", nil), resolution.Change{DeleteCSV: "a3"}, "a: nothing (failed) -> a3\n+ a3\n"},
		"a ClusterServiceVersion adopted": {newWorld(lines...).sub("a/stable").csv("a", "a2", nil), resolution.Change{Subscription: "a", Adopt: "a2"}, "a: nothing (failed) -> a3\n+ a3\n"},
		"a Subscription removed":          {stable(), resolution.Change{Subscription: "b", Remove: true}, "b: nothing (failed) -> nothing\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := resolution.WhatIf(c.world.in, c.change)
			require.NoError(t, err)
			require.Equal(t, c.want, differs(d))
		})
	}
}

func TestWhatIfAppliesChangesInOrder(t *testing.T) {
	lines := append(chain(), line("a/beta", "a4", "a3"))
	w := newWorld(lines...).sub("a/stable", has("a3")).csv("a", "a3", nil)
	d, err := resolution.WhatIf(w.in, resolution.Change{Subscription: "a", Channel: "beta"}, resolution.Change{Subscription: "a", VersionRange: new("<4.0.0")})
	require.NoError(t, err)
	require.Equal(t, "a: a3 -> a3 (Pinned)\n", differs(d))
}

func TestWhatIfRejectsChangesOfMissingObjects(t *testing.T) {
	w := newWorld(chain()...).sub("a/stable")
	for want, change := range map[string]resolution.Change{
		`there is no Subscription "x"`:         {Subscription: "x", Channel: "beta"},
		`there is no Subscription ""`:          {Channel: "beta"},
		"there is no ClusterServiceVersion x":  {DeleteCSV: "x"},
		"there is no ClusterServiceVersion a3": {Subscription: "a", Adopt: "a3"},
	} {
		_, err := resolution.WhatIf(w.in, resolution.Change{}, change)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		require.ErrorContains(t, err, "changes[1]")
		require.ErrorContains(t, err, want)
	}
}

// TestWhatIfDoesNotModifyTheInput: the input stays as it is, and two answers that are the same have no difference.
func TestWhatIfDoesNotModifyTheInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t, small).input()
		before := in
		before.Subscriptions = nil
		for _, s := range in.Subscriptions {
			before.Subscriptions = append(before.Subscriptions, s.DeepCopy())
		}
		before.CSVs = append([]*v1alpha1.ClusterServiceVersion(nil), in.CSVs...)
		d, err := resolution.WhatIf(in)
		if err != nil || differs(d) != "" {
			t.Fatalf("no change makes %s, %v", differs(d), err)
		}
		for _, s := range in.Subscriptions {
			if _, err := resolution.WhatIf(in, resolution.Change{Subscription: s.Name, Channel: "c1", VersionRange: new("<2.0.0")}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(before.Subscriptions, in.Subscriptions); diff != "" || len(before.CSVs) != len(in.CSVs) {
			t.Fatal(diff)
		}
	})
}
