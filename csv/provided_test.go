// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

const coolAPI = "Cool.v1.example.com"

// otherGroup lists the API of input's CSV in a namespace of its own.
func otherGroup(apis string, watched ...string) *operatorsv1.OperatorGroup {
	g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "group", UID: "other", ResourceVersion: "6"}}
	g.Annotations = map[string]string{"olm.providedAPIs": apis}
	g.Status.Namespaces = watched
	return g
}

// competitor returns a CSV of the other group's namespace, older or younger than ours.
func competitor(phase phaseName, age time.Duration) *v1alpha1.ClusterServiceVersion {
	c := operator("competitor.v1", 1)
	c.Namespace, c.UID, c.Annotations = "other", "rival", nil
	c.CreationTimestamp = *ago(age)
	hold(c, phase, "x", "", time.Hour)
	return c
}

// OLM's cases: an API conflict: Failed; APIs to add: the phase stays; APIs to remove: the phase stays; APIs to add to a
// static group: Failed; a static group without conflict: it goes on; a conflict that lasts: Failed stays, said once; a
// group's surface includes its own namespace unless it is global; odd entries in a list of provided APIs are ignored;
// groups meet in each other's own namespaces too; overlap of namespaces and APIs: add, nothing, conflict or remove.
func TestProvidedAPIsOfIntersectingGroups(t *testing.T) {
	older, younger := 1000*time.Hour, time.Hour
	conflict := [2]string{"Failed/InterOperatorGroupOwnerConflict", "intersecting operatorgroups provide the same apis"}
	static := [2]string{"Failed/CannotModifyStaticOperatorGroupProvidedAPIs", "static provided api operatorgroup cannot be modified by these apis"}
	for name, c := range map[string]struct {
		own    string // the annotation of our group
		change func(in *csv.Input)
		rule   string
		says   [2]string
		// annotation is what our group's becomes, "-" for no write.
		annotation string
	}{
		"nothing listed yet: the APIs are added":     {"", nil, "AddProvidedAPIs", [2]string{}, coolAPI},
		"others are kept, odd entries are not":       {"Z.v1.z, nonsense,A.v1.a", nil, "AddProvidedAPIs", [2]string{}, "A.v1.a,Cool.v1.example.com,Z.v1.z"},
		"listed: go on":                              {"A.v1.a, " + coolAPI, nil, "Health", [2]string{}, "-"},
		"another group lists them, namespaces apart": {coolAPI, func(in *csv.Input) { in.OtherGroups = olmcore.Found(otherGroup(coolAPI, "elsewhere")) }, "Health", [2]string{}, "-"},
		"another group lists something else":         {coolAPI, func(in *csv.Input) { in.OtherGroups = olmcore.Found(otherGroup("Hot.v1.example.com", "")) }, "Health", [2]string{}, "-"},
		"another group lists them in our namespace":  {"", func(in *csv.Input) { in.OtherGroups = olmcore.Found(otherGroup(coolAPI, "ns")) }, "APIConflict", conflict, "-"},
		"another group lists them everywhere":        {"", func(in *csv.Input) { in.OtherGroups = olmcore.Found(otherGroup(coolAPI, "")) }, "APIConflict", conflict, "-"},
		"we watch the other group's own namespace": {"", func(in *csv.Input) {
			in.OperatorGroups.Items[0].Status.Namespaces = []string{""}
			in.OperatorGroups.Items[0].Spec.TargetNamespaces = nil
			in.ClusterServiceVersion.Annotations["olm.targetNamespaces"] = ""
			in.ClusterServiceVersion.Spec.InstallModes = append(in.ClusterServiceVersion.Spec.InstallModes, v1alpha1.InstallMode{Type: "AllNamespaces", Supported: true})
			in.OtherGroups = olmcore.Found(otherGroup(coolAPI, "elsewhere"))
		}, "APIConflict", conflict, "-"},
		"both list them: the running operator stays": {coolAPI, func(in *csv.Input) {
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Found(competitor(failed, older))
		}, "Health", [2]string{}, "-"},
		"both list them and run: the younger gives way": {coolAPI, func(in *csv.Input) {
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Found(competitor(succeeded, older))
		}, "RemoveProvidedAPIs", [2]string{}, ""},
		"both list them and run: the older stays": {coolAPI, func(in *csv.Input) {
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Found(competitor(succeeded, younger))
		}, "Health", [2]string{}, "-"},
		"both list them, and nobody provides them there": {coolAPI, func(in *csv.Input) {
			in.OtherGroups = olmcore.Found(otherGroup(coolAPI, "ns"))
		}, "Health", [2]string{}, "-"},
		"a static group cannot be added to": {"", func(in *csv.Input) {
			in.OperatorGroups.Items[0].Spec.StaticProvidedAPIs = true
		}, "APIConflict", static, "-"},
		"a static group that lists them": {coolAPI, func(in *csv.Input) {
			in.OperatorGroups.Items[0].Spec.StaticProvidedAPIs = true
		}, "Health", [2]string{}, "-"},
		"the other groups were not read": {coolAPI, func(in *csv.Input) {
			in.OtherGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{}
		}, "NotObserved", [2]string{}, "-"},
		"the other operators were not read": {coolAPI, func(in *csv.Input) {
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
		}, "NotObserved", [2]string{}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
			deploy(t, &in)
			in.OperatorGroups.Items[0].Annotations["olm.providedAPIs"] = c.own
			if c.change != nil {
				c.change(&in)
			}
			a := assess(t, in)
			require.Equal(t, c.rule, a.Rule)
			out := reconciled(t, in)
			written := "-"
			deleted := 0
			for _, action := range out.Actions {
				if u, ok := action.(olmcore.Update); ok {
					require.Equal(t, "OperatorGroup", u.Target.Kind)
					written = u.After.GetAnnotations()["olm.providedAPIs"]
				}
				if _, ok := action.(olmcore.Delete); ok {
					deleted++
				}
			}
			require.Equal(t, c.annotation, written)
			if c.says[0] == "" {
				require.Equal(t, succeeded, a.Phase, "the phase stays")
				require.Zero(t, deleted)
				return
			}
			require.Equal(t, c.says, [2]string{string(a.Phase) + "/" + string(a.Reason), a.Message})
			require.Equal(t, 1, deleted, "its Deployment goes")
			require.Len(t, out.Transitions, 1)
			after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
			in.ClusterServiceVersion, in.Deployments.Items = after, nil
			out, err := outcome(in)
			require.NoError(t, err)
			require.Equal(t, csv.Outcome{}, out, "said once")
			in.OperatorGroups.Items[0].Annotations["olm.providedAPIs"] = coolAPI
			in.OtherGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
			require.Equal(t, v1alpha1.CSVReasonRequirementsUnknown, assess(t, in).Reason, "over once the other is gone")
		})
	}
}

func TestAnAPIConflictSparesTheDeploymentOfAnother(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	deploy(t, &in)
	in.OperatorGroups.Items[0].Annotations = nil
	in.OtherGroups = olmcore.Found(otherGroup(coolAPI, ""))
	for name, change := range map[string]func(o *metav1.ObjectMeta){
		"another owner label": func(o *metav1.ObjectMeta) { o.Labels["olm.owner"] = "cool.v0" },
		"another owner":       func(o *metav1.ObjectMeta) { o.OwnerReferences[0].UID = "x" },
		"a second owner": func(o *metav1.ObjectMeta) {
			other := o.OwnerReferences[0]
			other.UID = types.UID("x")
			o.OwnerReferences = append(o.OwnerReferences, other)
		},
	} {
		spared := in
		d := in.Deployments.Items[0].DeepCopy()
		change(&d.ObjectMeta)
		spared.Deployments.Items = append(spared.Deployments.Items[:0:0], d)
		out := reconciled(t, spared)
		require.Len(t, out.Actions, 1, name)
	}
}

// TestWhatAnAnnotationLists: an API is found in the annotation of a group whatever stands around it, in whatever order,
// and nothing else is taken for it.
func TestWhatAnAnnotationLists(t *testing.T) {
	entries := rapid.SliceOfN(rapid.SampledFrom([]string{
		coolAPI, " " + coolAPI, coolAPI + " ", coolAPI + ".x", "x" + coolAPI, "Cool.v10.example.com", "Coo.v1.example.com", "Cooler.v1.example.com",
		"Cool.v1.example.co", "Cool..example.com", "Cool.v1", "Cool", "", "nonsense", "A.v1.a", "Z.v1.z", "cool.v1.example.com",
	}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		list := entries.Draw(t, "entries")
		if rapid.Bool().Draw(t, "sorted") {
			slices.Sort(list)
		}
		listed := slices.ContainsFunc(list, func(s string) bool { return strings.TrimSpace(s) == coolAPI })
		in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
		in.OperatorGroups.Items[0].Annotations["olm.providedAPIs"] = strings.Join(list, ",")
		require.Equal(t, !listed, assess(t, in).Rule == "AddProvidedAPIs", "%q", list)
		in.OperatorGroups.Items[0].Annotations["olm.providedAPIs"] = coolAPI
		in.OtherGroups = olmcore.Found(otherGroup(strings.Join(list, ","), "ns"))
		in.OtherProviders.Items = append(in.OtherProviders.Items, competitor(succeeded, 1000*time.Hour))
		require.Equal(t, listed, assess(t, in).Rule == "RemoveProvidedAPIs", "%q", list)
	})
}

// TestEachAPIIsLookedForInTheAnnotation, in whatever order a CSV and the annotation list them.
func TestEachAPIIsLookedForInTheAnnotation(t *testing.T) {
	kinds := []string{"A", "Ab", "B", "Cool", "D", "E"}
	some := rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 6)
	rapid.Check(t, func(t *rapid.T) {
		in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
		owned := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions.Owned
		*owned = nil
		list := rapid.Permutation(kinds).Draw(t, "annotation")[:rapid.IntRange(0, len(kinds)).Draw(t, "length")]
		if rapid.Bool().Draw(t, "sorted") {
			slices.Sort(list)
		}
		listed := true
		for _, kind := range some.Draw(t, "owned") {
			*owned = append(*owned, v1alpha1.CRDDescription{Name: "cools.example.com", Version: "v1", Kind: kind})
			listed = listed && slices.Contains(list, kind)
		}
		entries := make([]string, len(list))
		for i, kind := range list {
			entries[i] = kind + ".v1.example.com"
		}
		in.OperatorGroups.Items[0].Annotations["olm.providedAPIs"] = strings.Join(entries, ",")
		if after, ok := metadataOf(firstOf(must(csv.Reconcile(in)).Actions)); ok { // the labels first
			in.ClusterServiceVersion = after
		}
		require.Equal(t, !listed, assess(t, in).Rule == "AddProvidedAPIs", "%v %v", *owned, entries)
	})
}

// TestALongAnnotationIsReadOnce: every version that provides an API looks at the groups of all namespaces, and whoever
// writes one group writes its annotation.
func TestALongAnnotationIsReadOnce(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	in.OtherGroups = olmcore.Found(otherGroup(strings.Repeat("Cool.", 50_000), ""))
	done := make(chan string)
	go func() { done <- assess(t, in).Rule }()
	select {
	case rule := <-done:
		require.Equal(t, "Health", rule)
	case <-time.After(5 * time.Second):
		t.Fatal("an annotation of 250,000 characters takes more than five seconds")
	}
	in.OtherGroups = olmcore.Found(otherGroup("Coolest,XCool.v1.example.com, "+coolAPI+" ", ""))
	in.OtherProviders = olmcore.Found(competitor(succeeded, 1000*time.Hour))
	require.Equal(t, "RemoveProvidedAPIs", assess(t, in).Rule, "an entry after others that hold its kind")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
