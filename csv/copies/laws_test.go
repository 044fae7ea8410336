// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/csvtest"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// atRest returns Inputs without anything to do.
func atRest() map[string]copies.Input {
	inputs := map[string]copies.Input{}
	for _, targets := range [][]string{{""}, {"a", "b"}, {"ns"}} {
		inputs["for "+strings.Join(targets, ",")] = world(targets...)
		inputs["slim for "+strings.Join(targets, ",")] = slimmed(world(targets...))
	}
	return inputs
}

// TestOriginalsWithoutCopiesAreNotEncoded checks that an original that needs no copies costs no encoding. Most
// originals of a cluster need none.
func TestOriginalsWithoutCopiesAreNotEncoded(t *testing.T) {
	allocations := func(annotations int) float64 {
		in := world("ns")
		for i := range annotations {
			in.Sources.Items[0].Annotations[fmt.Sprint("note-", i)] = "text"
		}
		require.Equal(t, olmcore.Result{}, reconciled(t, in).Result)
		return testing.AllocsPerRun(100, func() { _, _ = copies.Reconcile(in) })
	}
	require.Equal(t, allocations(0), allocations(1000))
}

func TestReconcileWithCheckpointAllocatesNothing(t *testing.T) {
	for name, in := range atRest() {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.CheckpointSound(copies.Reconcile, in))
			require.NoError(t, invariant.CheckpointCovers(copies.Reconcile, in))
			out := reconciled(t, in)
			require.Equal(t, olmcore.Result{}, out.Result)
			require.NotNil(t, out.Checkpoint)
			in.Checkpoint = out.Checkpoint
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = copies.Reconcile(in) }))
		})
	}
}

// encoded contains the fields of an Input that the fuzz test reads from JSON.
type encoded struct {
	Key            types.NamespacedName
	Config         copies.Config
	Sources        olmcore.Observed[*version]
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	Copies         olmcore.Observed[*version]
	Namespaces     olmcore.Observed[*corev1.Namespace]
	OLMConfigs     olmcore.Observed[*operatorsv1.OLMConfig]
	Events         olmcore.Observed[*corev1.Event]
}

// FuzzReconcile decodes an original, its copies and all other objects from any bytes.
func FuzzReconcile(f *testing.F) {
	for _, in := range atRest() {
		data, err := json.Marshal(encoded{in.Key, in.Config, in.Sources, in.OperatorGroups, in.Copies, in.Namespaces, in.OLMConfigs, in.Events})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"Key":{"Namespace":"n","Name":"c"},"Sources":{"Complete":true},"Copies":{"Complete":true,"Items":[{"metadata":{"name":"c","namespace":"x","labels":{"olm.copiedFrom":"n"},"annotations":{"$copyhash-spec":"x","$copy-keys":"["}}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e encoded
		if json.Unmarshal(data, &e) != nil {
			return
		}
		in := copies.Input{
			Now: now, Key: e.Key, Config: e.Config, Sources: e.Sources, OperatorGroups: e.OperatorGroups, Copies: e.Copies,
			Namespaces: e.Namespaces, OLMConfigs: e.OLMConfigs, Events: e.Events,
		}
		require.NoError(t, invariant.Deterministic(reconcile, in))
		if _, err := reconcile(in); err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
	})
}

// FuzzSlim decodes a copy from any bytes.
func FuzzSlim(f *testing.F) {
	data, err := json.Marshal(copyOf(source(""), "a"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(strings.Replace(string(data), "{", `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",`, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := decode.Decode(data)
		if err != nil {
			return
		}
		slim := copies.Slim(o)
		require.Equal(t, olmcore.RefOf(o), olmcore.RefOf(slim))
		require.Equal(t, copies.Affected(o), copies.Affected(slim))
		require.Same(t, slim, copies.Slim(slim))
	})
}

func TestLawsHoldForRandomInputs(t *testing.T) {
	vocabulary := gen.Vocabulary{
		Now: now, Namespace: "ns", Names: []string{"cool.v1", "a", "b", "cluster", "group"},
		Words: map[string][]string{"phase": {"", "Succeeded", "Failed"}, "reason": {"", "Copied", "InstallSucceeded", "NoOperatorGroup"}, "namespaces": {"", "a"}},
	}
	rapid.Check(t, func(t *rapid.T) {
		in := gen.Value[copies.Input](vocabulary).Draw(t, "in")
		in.Now, in.Checkpoint, in.Key = now, nil, key
		base := world(rapid.SampledFrom([]string{"", "a", "ns"}).Draw(t, "targets"))
		if rapid.Bool().Draw(t, "an operator that is there") {
			in.Sources, in.OperatorGroups = base.Sources, base.OperatorGroups
		}
		if rapid.Bool().Draw(t, "copies that are there") {
			in.Copies, in.Namespaces = base.Copies, base.Namespaces
		}
		for _, c := range in.Sources.Items { // a release or quantity with any text cannot be recorded
			c.Spec = base.Sources.Items[0].Spec
		}
		for _, complete := range []*bool{&in.Sources.Complete, &in.Copies.Complete, &in.OperatorGroups.Complete, &in.Namespaces.Complete, &in.OLMConfigs.Complete, &in.Events.Complete} {
			*complete = true // an incomplete list with items is an InputError
		}
		require.NoError(t, invariant.Laws(reconcile, in))
		require.NoError(t, invariant.CheckpointSound(copies.Reconcile, in))
	})
}

func TestGatherReadsCopiesAndNamespacesOfTheTargets(t *testing.T) {
	for name, tt := range map[string]struct {
		targets    string
		absent     bool
		namespaces []string
		copies     []string
	}{
		"all namespaces":         {"", false, []string{"a", "b", "c", "ns"}, []string{"a", "b", "c"}},
		"by name":                {"a,ns,z", false, []string{"a", "b", "c", "ns"}, []string{"b", "c", "a"}},
		"its own":                {"ns", false, []string{"b", "c", "ns"}, []string{"b", "c"}},
		"the original is absent": {"", true, []string{"b", "c"}, []string{"b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world("")
			unlabelled := copyIn(t, &w, "a") // any object with the name is read
			unlabelled.Labels = nil
			other := copyOf(source(""), "a")
			other.Name = "other"
			objects := []olmcore.Object{other, olmConfig(nil)}
			for _, n := range w.Namespaces.Items {
				objects = append(objects, n)
			}
			for _, c := range w.Copies.Items {
				objects = append(objects, c)
			}
			if !tt.absent {
				objects = append(objects, source(tt.targets), groupOf(strings.Split(tt.targets, ",")...))
			}
			snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
			require.NoError(t, err)
			in, err := copies.Gather(t.Context(), snapshot, key, copies.Config{})
			require.NoError(t, err)
			require.Equal(t, !tt.absent, len(in.Sources.Items) == 1)
			require.Len(t, in.OLMConfigs.Items, 1)
			require.True(t, in.Copies.Complete && in.Namespaces.Complete && in.Events.Complete)
			var namespaces, of []string
			for _, n := range in.Namespaces.Items {
				namespaces = append(namespaces, n.Name)
			}
			for _, c := range in.Copies.Items {
				of = append(of, c.Namespace)
			}
			require.ElementsMatch(t, tt.namespaces, namespaces)
			require.ElementsMatch(t, tt.copies, of)
		})
	}
}

func TestGatherReturnsFailedReads(t *testing.T) {
	nothing, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	_, err = copies.Gather(t.Context(), nothing, key, copies.Config{})
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	require.False(t, apierrors.IsNotFound(err))
}

// TestGatherReadsTheEventOnlyIfTheOLMConfigSetsTheOption checks that Gather reads the Event only if it may exist,
// because Events are not cached.
func TestGatherReadsTheEventOnlyIfTheOLMConfigSetsTheOption(t *testing.T) {
	c := source("")
	event := &corev1.Event{}
	event.Namespace, event.Name = "ns", copies.EventName(c)
	for disabled, want := range map[*bool]int{nil: 0, new(true): 1, new(false): 1} {
		snapshot, err := olmcore.NewSnapshot([]olmcore.Object{c, groupOf(""), event, olmConfig(disabled)}, olmcore.Everything)
		require.NoError(t, err)
		in, err := copies.Gather(t.Context(), snapshot, key, copies.Config{})
		require.NoError(t, err)
		require.Len(t, in.Events.Items, want)
	}
}

func TestAffectedReturnsOriginals(t *testing.T) {
	all, own := []types.NamespacedName{{}}, []types.NamespacedName{key}
	unmarked := copyOf(source(""), "a")
	unmarked.Labels = nil
	foreign := copyOf(source(""), "a")
	foreign.Labels["olm.copiedFrom"] = "b"
	other := olmConfig(nil)
	other.Name = "other"
	event := func(reason string) *corev1.Event {
		return &corev1.Event{Reason: reason, InvolvedObject: corev1.ObjectReference{Kind: "ClusterServiceVersion", Namespace: "ns", Name: "cool.v1"}}
	}
	for name, c := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"an original":                 {source(""), own},
		"a copy":                      {copyOf(source(""), "a"), own},
		"a slim copy":                 {copies.Slim(copyOf(source(""), "a")), own},
		"a copy without its label":    {unmarked, []types.NamespacedName{{Namespace: "a", Name: "cool.v1"}, key}},
		"a copy of another namespace": {foreign, []types.NamespacedName{{Namespace: "b", Name: "cool.v1"}, key}},
		"a group":                     {groupOf(""), []types.NamespacedName{{Namespace: "ns"}}},
		"a namespace":                 {namespace("a", nil), all},
		"the OLMConfig":               {olmConfig(nil), all},
		"another OLMConfig":           {other, nil},
		"the Event":                   {event("DisabledCopiedCSVs"), own},
		"another Event":               {event("x"), nil},
		"another kind":                {&corev1.Pod{}, nil},
		"a CSV without metadata":      {&version{}, nil},
	} {
		require.Equal(t, c.want, copies.Affected(c.object), name)
	}
}

// TestConcernedSelectsOriginals checks which originals Concerned selects for changes for which Affected returns a
// wildcard.
func TestConcernedSelectsOriginals(t *testing.T) {
	global, some, itself := source(""), source("a,b"), source("ns")
	leaving := namespace("a", nil)
	leaving.Status.Phase = corev1.NamespaceTerminating
	for name, c := range map[string]struct {
		old, next            olmcore.Object
		global, some, itself bool
	}{
		"a new namespace":               {nil, namespace("a", nil), true, true, false},
		"a terminating namespace":       {namespace("a", nil), leaving, true, true, false},
		"the namespace of the original": {nil, namespace("ns", nil), true, true, true},
		"a namespace that few watch":    {nil, namespace("z", nil), true, false, false},
		"an OLMConfig":                  {nil, olmConfig(new(true)), true, false, false},
		"a group of the namespace":      {nil, groupOf(""), true, true, true},
		"an OperatorGroup elsewhere":    {nil, &operatorsv1.OperatorGroup{}, false, false, false},
		"another kind":                  {nil, source(""), true, true, true},
	} {
		concerned := copies.Concerned(c.old, c.next)
		require.Equal(t, []bool{c.global, c.some, c.itself}, []bool{concerned(global), concerned(some), concerned(itself)}, name)
	}
	require.Nil(t, copies.Concerned(namespace("a", nil), namespace("a", map[string]string{"team": "x"})), "labels of a namespace")
}

// TestAffectedNamesOriginalsWhoseOutcomeChanges removes each object of a world in turn.
func TestAffectedNamesOriginalsWhoseOutcomeChanges(t *testing.T) {
	w := world("")
	w.OLMConfigs = olmcore.Found(olmConfig(new(true)))
	leaving := namespace("c", nil)
	leaving.Status.Phase = corev1.NamespaceTerminating
	objects := []olmcore.Object{w.Sources.Items[0], w.OperatorGroups.Items[0], w.OLMConfigs.Items[0], namespace("a", nil), namespace("b", nil), leaving, copyOf(source(""), "a"), copyOf(source(""), "c")}
	outcome := func(objects []olmcore.Object) []string {
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		in, err := copies.Gather(t.Context(), snapshot, key, copies.Config{ProtectedNamespaces: []string{"b"}})
		require.NoError(t, err)
		in.Now = now
		return lines(reconciled(t, in).Result)
	}
	whole := outcome(objects)
	require.Len(t, whole, 3)
	for i, o := range objects {
		rest := append(append([]olmcore.Object{}, objects[:i]...), objects[i+1:]...)
		if got := outcome(rest); strings.Join(got, "\n") != strings.Join(whole, "\n") {
			require.Contains(t, olmcore.ExpandKeys(copies.Affected(o), []types.NamespacedName{key}), key, olmcore.RefOf(o).String())
		}
	}
}

// TestCopiesConverge runs actions until none are left, and checks that exactly the desired copies exist. Package
// fake/olm tests two managers and lost writes.
func TestCopiesConverge(t *testing.T) {
	in := world("")
	copyIn(t, &in, "b").Spec.Description = "tampered"
	in.Copies.Items = in.Copies.Items[1:]
	stray := copyOf(source(""), "z")
	in.Copies.Items = append(in.Copies.Items, stray)
	for round := 0; ; round++ {
		require.Less(t, round, 4)
		res := reconciled(t, slimmed(in)).Result
		if len(res.Actions) == 0 {
			break
		}
		for _, a := range res.Actions {
			record, err := olmcore.RecordOf(a)
			require.NoError(t, err)
			have := in.Copies
			var current olmcore.Object
			for _, c := range have.Items {
				if c.Namespace == record.Target.Namespace {
					current = c
				}
			}
			after, err := decode.Apply(record, current)
			require.NoError(t, err)
			in.Copies = csvtest.Without(in.Copies, record.Target)
			if after != nil {
				after.SetUID("copy")
				after.SetResourceVersion(after.GetResourceVersion() + "1")
				in.Copies.Items = append(in.Copies.Items, after.(*version))
			}
		}
	}
	var of []string
	for _, c := range in.Copies.Items {
		of = append(of, c.Namespace)
		require.NotContains(t, c.Annotations, "olm.targetNamespaces")
		require.Empty(t, c.OwnerReferences)
		require.Empty(t, c.Finalizers)
	}
	require.ElementsMatch(t, []string{"a", "b", "c", "z"}, of, "the operator watches all namespaces, so a copy in an unread namespace stays")
}
