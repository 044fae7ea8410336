// SPDX-License-Identifier: Apache-2.0

package ownerrefs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/internal/ownerrefs"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func owner(name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Name: name, UID: types.UID(uid),
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

func TestOwnerReferences(t *testing.T) {
	controlling := owner("a", "1")
	controlling.Controller = new(true)
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "9"}
	type refs = []metav1.OwnerReference
	a, b := owner("a", "1"), owner("b", "2")
	old := owner("a", "0")
	for name, tt := range map[string]struct{ have, want, repaired, added refs }{
		"nothing wanted, nothing changed":         {have: refs{foreign}, repaired: refs{foreign}, added: refs{foreign}},
		"an absent owner is added at the end":     {have: refs{foreign}, want: refs{a}, repaired: refs{foreign, a}, added: refs{foreign, a}},
		"new owners are sorted by name":           {want: refs{b, a}, repaired: refs{a, b}, added: refs{a, b}},
		"a recreated owner replaces its old self": {have: refs{old}, want: refs{a}, repaired: refs{a}, added: refs{old, a}},
		"a malformed reference is rewritten":      {have: refs{controlling}, want: refs{a}, repaired: refs{a}, added: refs{a}},
		"duplicates of one UID are dropped": {have: refs{foreign, foreign}, want: refs{a},
			repaired: refs{foreign, a}, added: refs{foreign, a}},
		"an owner without UID is never written":    {want: refs{owner("a", "")}},
		"another live owner is never removed":      {have: refs{b}, want: refs{a}, repaired: refs{b, a}, added: refs{b, a}},
		"a foreign kind of that name is no old us": {have: refs{foreign}, want: refs{a}, repaired: refs{foreign, a}, added: refs{foreign, a}},
	} {
		t.Run(name, func(t *testing.T) {
			repaired, changed := ownerrefs.Repair(tt.have, tt.want)
			require.Empty(t, cmp.Diff(tt.repaired, repaired))
			require.Equal(t, !cmp.Equal(tt.have, tt.repaired), changed)
			added, changed := ownerrefs.Add(tt.have, tt.want)
			require.Empty(t, cmp.Diff(tt.added, added))
			require.Equal(t, !cmp.Equal(tt.have, tt.added), changed)
		})
	}
}

func TestDecodedOwnerReferencesCompareEqual(t *testing.T) {
	a := owner("a", "1")
	data, err := json.Marshal([]metav1.OwnerReference{a})
	require.NoError(t, err)
	var first, second []metav1.OwnerReference
	require.NoError(t, json.Unmarshal(data, &first))
	require.NoError(t, json.Unmarshal(data, &second))
	require.True(t, olmcore.SameOwnerReference(first[0], second[0]))
	_, changed := ownerrefs.Repair(first, second)
	require.False(t, changed, "the pointers differ, the values do not")

	absent := a
	absent.Controller, absent.BlockOwnerDeletion = nil, nil
	require.True(t, olmcore.SameOwnerReference(a, absent))
}

func drawOwners(t *rapid.T, label string) []metav1.OwnerReference {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) metav1.OwnerReference {
		r := owner(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "uid")))
		if rapid.Bool().Draw(t, "controls") {
			r.Controller = new(true)
		}
		return r
	}), 0, 6).Draw(t, label)
}

// Wanted references of one name must have one UID, as live objects do.
func drawWanted(t *rapid.T) []metav1.OwnerReference {
	var want []metav1.OwnerReference
	for i, name := range []string{"a", "b", "c"} {
		if rapid.Bool().Draw(t, name) {
			want = append(want, owner(name, fmt.Sprint(i+1)))
		}
	}
	return rapid.Permutation(want).Draw(t, "want")
}

func TestOwnerReferencesHoldEveryWantedOwnerOnceAndSettle(t *testing.T) {
	var many []metav1.OwnerReference // with which a list is long enough for an index
	for i := range 40 {
		many = append(many, owner(fmt.Sprint("m", i), fmt.Sprint("m", i)))
	}
	rapid.Check(t, func(t *rapid.T) {
		have, want := drawOwners(t, "have"), drawWanted(t)
		if rapid.Bool().Draw(t, "long have") {
			have = append(have, many...)
		}
		if rapid.Bool().Draw(t, "long want") {
			want = append(want, many...)
		}
		before := slices.Clone(have)
		for name, merge := range map[string]func(a, b []metav1.OwnerReference) ([]metav1.OwnerReference, bool){
			"repair": ownerrefs.Repair, "add": ownerrefs.Add,
		} {
			got, changed := merge(have, want)
			require.Equal(t, before, have, "%s writes to its argument", name)
			require.Equal(t, changed, !cmp.Equal(have, got), name)
			for _, w := range want {
				differs := func(r metav1.OwnerReference) bool { return !olmcore.SameOwnerReference(r, w) }
				require.Len(t, slices.DeleteFunc(slices.Clone(got), differs), 1)
			}
			again, changed := merge(got, want)
			require.False(t, changed, "%s does not settle", name)
			require.Equal(t, got, again)
		}
		repaired, _ := ownerrefs.Repair(have, want)
		for _, r := range have {
			sameUID := func(a metav1.OwnerReference) bool { return a.UID == r.UID }
			kept := slices.ContainsFunc(want, sameUID) || slices.ContainsFunc(have, func(a metav1.OwnerReference) bool {
				return sameUID(a) && !slices.ContainsFunc(want, func(w metav1.OwnerReference) bool { return w.Name == a.Name })
			})
			require.Equal(t, kept, slices.ContainsFunc(repaired, sameUID), "%s of %s", r.UID, r.Name)
		}
		added, _ := ownerrefs.Add(have, want)
		for _, r := range have {
			require.True(t, slices.ContainsFunc(added, func(a metav1.OwnerReference) bool { return a.UID == r.UID }), "lost %s", r.UID)
		}
	})
}

func TestTwoRacingAddersEndWithTheUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := []metav1.OwnerReference{owner("base", "9")}
		first, second := drawWanted(t), drawWanted(t)
		ab, _ := ownerrefs.Add(base, first)
		ab, _ = ownerrefs.Add(ab, second)
		ba, _ := ownerrefs.Add(base, second)
		ba, _ = ownerrefs.Add(ba, first)
		uids := func(refs []metav1.OwnerReference) []string {
			var out []string
			for _, r := range refs {
				out = append(out, string(r.UID))
			}
			slices.Sort(out)
			return out
		}
		require.Equal(t, uids(ab), uids(ba))
	})
}
