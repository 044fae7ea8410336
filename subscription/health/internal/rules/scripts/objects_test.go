// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/chaos"
	"github.com/olmcore/olm/fake/gen"
	_ "github.com/olmcore/olm/fake/gen/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/health/internal/rules"
)

// perKind is how many objects of each kind are drawn.
const perKind = 1000

// fields are the names of the fields that the tables look at, by their paths.
var fields = map[string]string{
	"status.phase": "phase", "status.state": "state", "status.reason": "reason", "status.connectionState.lastObservedState": "lastobservedstate",
}

// wordsOf returns what the fields may hold that a table looks at, read from the table itself, and some that are not in
// it.
func wordsOf(table rules.Table) map[string][]string {
	all := map[string][]string{
		"": {"etcd.v1", "etcd.v2", "it said \"no\"\n\\", ""}, "type": {"Other"}, "status": {"True", "False", "Unknown", ""},
		"reason": {"Other", ""}, "phase": {"Melting", ""}, "state": {""}, "lastobservedstate": {"IDLE", ""},
	}
	for _, row := range table.Rows {
		for _, test := range row.When {
			if field := fields[test.Field]; field != "" {
				all[field] = append(all[field], test.In...)
			}
			if test.Condition != "" {
				all["type"], all["reason"] = append(all["type"], test.Condition), append(all["reason"], test.Reasons...)
			}
		}
	}
	for field := range all {
		slices.Sort(all[field])
		all[field] = slices.Compact(all[field])
	}
	return all
}

// objectsOf returns a generator of the objects of a table.
func objectsOf(table rules.Table) *rapid.Generator[olmcore.Object] {
	v := gen.Vocabulary{Now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), Namespace: "ops", Names: []string{"a", "b"}, Words: wordsOf(table)}
	switch table.Kind {
	case v1alpha1.SubscriptionKind:
		return rapid.Map(gen.Value[v1alpha1.Subscription](v), func(o v1alpha1.Subscription) olmcore.Object { return &o })
	case v1alpha1.InstallPlanKind:
		return rapid.Map(gen.Value[v1alpha1.InstallPlan](v), func(o v1alpha1.InstallPlan) olmcore.Object { return &o })
	case v1alpha1.ClusterServiceVersionKind:
		return rapid.Map(gen.Value[v1alpha1.ClusterServiceVersion](v), func(o v1alpha1.ClusterServiceVersion) olmcore.Object { return &o })
	}
	return rapid.Map(gen.Value[v1alpha1.CatalogSource](v), func(o v1alpha1.CatalogSource) olmcore.Object { return &o })
}

// TestScriptsAgreeOnRandomObjects fills objects of each kind at random, and removes parts of them, sets them to
// null or to another type. It checks that all scripts agree, and that every row of every table is used.
func TestScriptsAgreeOnRandomObjects(t *testing.T) {
	for _, table := range rules.Tables() {
		t.Run(table.Kind, func(t *testing.T) {
			s, met, random, objects := scriptsOf(t, table.Kind), map[string]int{}, rand.New(rand.NewPCG(1, 2)), objectsOf(table)
			for seed := range perKind {
				o, err := olmcore.ToMap(objects.Example(seed))
				require.NoError(t, err)
				met[s.agree(t, o).Reason]++
				for range 3 {
					met[s.agree(t, spoiled(o, random, 1+random.IntN(3))).Reason]++
				}
			}
			for _, row := range table.Rows {
				require.NotZero(t, met[row.Reason], "no object was %s: %v", row.Reason, met)
			}
		})
	}
}

// spoiled returns a copy of an object in which some parts are missing, null or of another type.
func spoiled(object map[string]any, random *rand.Rand, times int) map[string]any {
	changed := copied(object).(map[string]any)
	for range times {
		spoil(changed, random, 0)
	}
	return changed
}

// odd are values that may stand anywhere.
func odd(random *rand.Rand) any {
	values := []any{nil, "", "True", float64(7), int64(1), true, []any{}, map[string]any{}, []any{nil, "x", map[string]any{"type": nil}}, map[string]any{"type": "True"}}
	return copied(values[random.IntN(len(values))])
}

func spoil(m map[string]any, random *rand.Rand, depth int) {
	keys := slices.Sorted(maps.Keys(m))
	if depth == 0 { // what identifies the object stays
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == "kind" || k == "apiVersion" })
	}
	if len(keys) == 0 {
		return
	}
	key := keys[random.IntN(len(keys))]
	if depth == 0 && random.IntN(3) > 0 {
		key = "status"
	}
	if random.IntN(4) > 0 {
		switch below := m[key].(type) {
		case map[string]any:
			spoil(below, random, depth+1)
			return
		case []any:
			if len(below) > 0 {
				i := random.IntN(len(below))
				if entry, isMap := below[i].(map[string]any); isMap && random.IntN(2) > 0 {
					spoil(entry, random, depth+1)
				} else {
					below[i] = odd(random)
				}
				return
			}
		}
	}
	if random.IntN(3) == 0 && (depth > 0 || key != "metadata") {
		delete(m, key)
		return
	}
	m[key] = odd(random)
}

func copied(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = copied(item)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = copied(item)
		}
		return list
	}
	return value
}

// TestScriptsAgreeInRandomClusters checks each version of an object that OLM, users and failures leave in a fake
// cluster.
func TestScriptsAgreeInRandomClusters(t *testing.T) {
	all := map[string]*scripts{}
	for _, table := range rules.Tables() {
		all[table.Kind] = scriptsOf(t, table.Kind)
	}
	met := map[string]int{}
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 20260102))
		h := chaos.New(chaos.Options{Setting: chaos.Setting{Approves: true, Deletes: true}})
		steps, seen := chaos.Steps(h.Options), map[string]bool{}
		const last = 1500
		for i := range last + 1 {
			if i == last {
				require.NoError(t, h.Heal())
			} else {
				require.NoError(t, h.Do(chaos.Draw(steps, random), random))
			}
			for _, o := range h.Cluster.Objects() {
				ref := olmcore.RefOf(o)
				s, version := all[ref.Kind], fmt.Sprint(ref.Kind, ref.UID, ref.ResourceVersion)
				if s == nil || seen[version] {
					continue
				}
				seen[version] = true
				content, err := olmcore.ToMap(o)
				require.NoError(t, err)
				met[ref.Kind+" "+string(s.agree(t, content).Status)]++
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		require.NotZero(t, met[kind+" "+string(rules.Healthy)], "%v", met)
		require.NotZero(t, met[kind+" "+string(rules.Progressing)], "%v", met)
	}
}
