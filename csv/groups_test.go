// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// surface returns the namespaces of a group with these targets and its own namespace. Nil means all namespaces.
func surface(own string, targets []string) []string {
	if slices.Equal(targets, []string{""}) {
		return nil
	}
	return append(slices.Clone(targets), own)
}

func meet(a, b []string) bool {
	return a == nil || b == nil || slices.ContainsFunc(a, func(n string) bool { return slices.Contains(b, n) })
}

// conflicts reports whether a CSV has an API conflict with the group of another namespace.
func conflicts(t require.TestingT, own string, targets []string, other string, theirs []string) bool {
	in := input(succeeded, "InstallSucceeded", "")
	c := in.ClusterServiceVersion
	c.Namespace = own
	c.Spec.InstallModes = nil
	for _, mode := range []v1alpha1.InstallModeType{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		c.Spec.InstallModes = append(c.Spec.InstallModes, v1alpha1.InstallMode{Type: mode, Supported: true})
	}
	c.Annotations = map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": own, "olm.targetNamespaces": strings.Join(targets, ",")}
	g := in.OperatorGroups.Items[0]
	g.Namespace, g.Annotations, g.Status.Namespaces = own, nil, targets
	o := otherGroup(coolAPI, theirs...)
	o.Namespace = other
	in.OtherGroups = olmcore.Found(o)
	rule := assess(t, in).Rule
	require.Contains(t, []string{"APIConflict", "AddProvidedAPIs"}, rule)
	return rule == "APIConflict"
}

// TestOperatorGroupsIntersectIfTheyShareANamespace checks that two groups intersect if their sets of namespaces do, in
// either order. A group of all namespaces intersects every group.
// OLM's cases: the namespaces of a group include its own, unless it is global; intersection, union and containment of
// namespaces, with all; groups intersect in each other's own namespaces too.
func TestOperatorGroupsIntersectIfTheyShareANamespace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		targets := rapid.Custom(func(t *rapid.T) []string {
			if rapid.IntRange(0, 4).Draw(t, "all") == 0 {
				return []string{""}
			}
			list := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID[string]).Draw(t, "names")
			slices.Sort(list)
			return list
		})
		own := rapid.Permutation(names).Draw(t, "own")
		ours, theirs := targets.Draw(t, "ours"), targets.Draw(t, "theirs")
		want := meet(surface(own[0], ours), surface(own[1], theirs))
		require.Equal(t, want, conflicts(t, own[0], ours, own[1], theirs))
		require.Equal(t, want, conflicts(t, own[1], theirs, own[0], ours), "the other way round")
	})
}

// TestTargetNamespacesSurviveTheAnnotation checks the way from the spec of a group through its status to the annotation
// of a CSV. An empty set of namespaces never becomes the set of all namespaces, or the reverse.
// OLM's cases: a selector that matches: status and annotations; all namespaces.
func TestTargetNamespacesSurviveTheAnnotation(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	labels := selector.MatchLabels
	for name, c := range map[string]struct {
		spec       operatorsv1.OperatorGroupSpec
		namespaces []*corev1.Namespace
		was        *string // the annotation before
		annotation *string
		says       string
	}{
		"all, from nothing":          {operatorsv1.OperatorGroupSpec{}, nil, nil, new(""), "AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces"},
		"all, from none":             {operatorsv1.OperatorGroupSpec{Selector: &metav1.LabelSelector{}}, nil, nil, new(""), "AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces"},
		"none, from all":             {operatorsv1.OperatorGroupSpec{Selector: selector}, nil, new(""), nil, "no targetNamespaces are matched operatorgroups namespace selection"},
		"none, from nothing":         {operatorsv1.OperatorGroupSpec{Selector: selector}, nil, nil, nil, "no targetNamespaces are matched operatorgroups namespace selection"},
		"one, from all":              {operatorsv1.OperatorGroupSpec{Selector: selector}, []*corev1.Namespace{namespace("x", labels)}, new(""), new("x"), "requirements not yet checked"},
		"two, sorted, from one":      {operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"y", "x"}}, nil, new("x"), new("x,y"), "MultiNamespace InstallModeType not supported, cannot configure to watch 2 namespaces"},
		"its own, from the same":     {operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ns"}}, nil, new("ns"), new("ns"), "requirements not yet checked"},
		"a longer name, from a part": {operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ns-x"}}, nil, new("ns"), new("ns-x"), "requirements not yet checked"},
	} {
		t.Run(name, func(t *testing.T) {
			g := group()
			g.Spec, g.Status = c.spec, operatorsv1.OperatorGroupStatus{}
			res, err := operatorgroup.Reconcile(operatorgroup.Input{Now: now, OperatorGroup: g, Namespaces: olmcore.Found(c.namespaces...)})
			require.NoError(t, err)
			computed, ok := olmcore.StatusOf[*operatorsv1.OperatorGroup](res.Actions)
			require.True(t, ok)
			in := input(none, "", "")
			in.OperatorGroups = olmcore.Found(computed)
			delete(in.ClusterServiceVersion.Annotations, "olm.targetNamespaces")
			if c.was != nil {
				in.ClusterServiceVersion.Annotations["olm.targetNamespaces"] = *c.was
			}
			out := reconciled(t, in)
			if updated, ok := metadataOf(out.Actions[0]); ok {
				in.ClusterServiceVersion = updated
			}
			value, annotated := in.ClusterServiceVersion.Annotations["olm.targetNamespaces"]
			require.Equal(t, c.annotation != nil, annotated)
			if annotated {
				require.Equal(t, *c.annotation, value)
			}
			require.Equal(t, c.says, assess(t, in).Message)
		})
	}
}

// TestOneOperatorKeepsContestedAPI installs the same operator for two teams whose target namespaces overlap. In any
// order of reconciliation, exactly one group lists the API in the end, and its operator runs. It is the group of the
// older version.
func TestOneOperatorKeepsContestedAPI(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		c, d := newWorld(csv.Config{})
		objects := fromFiles("base.yaml", "v1.yaml")
		template := objects[len(objects)-1].(*v1alpha1.ClusterServiceVersion)
		template.Spec.InstallStrategy.StrategySpec.ClusterPermissions = nil
		template.Spec.InstallModes = []v1alpha1.InstallMode{{Type: "AllNamespaces", Supported: true}}
		require.NoError(t, c.Create(objects[1]))
		apart := rapid.Bool().Draw(t, "apart") // one after the other
		first := ""
		for _, ns := range rapid.Permutation([]string{"east", "west"}).Draw(t, "order") {
			g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "group"}}
			v := template.DeepCopy()
			v.Namespace = ns
			require.NoError(t, c.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cool"}}, g, v))
			if apart && first == "" {
				first = ns
				require.NoError(t, d.Settle(ctx))
			}
		}
		if rapid.Bool().Draw(t, "reversed") {
			slices.Reverse(d.Controllers)
		}
		require.NoError(t, d.RunUntilIdle(ctx, time.Hour))
		running := map[string]bool{}
		for _, v := range csvs(c) {
			g := fake.Find[*operatorsv1.OperatorGroup](c, v.Namespace, "group")
			lists := strings.Contains(g.Annotations["olm.providedAPIs"], coolAPI)
			require.Equal(t, v.Status.Phase == succeeded, lists, "%s: %s", v.Namespace, v.Status.Message)
			if lists {
				running[v.Namespace] = true
				continue
			}
			require.Equal(t, reason("InterOperatorGroupOwnerConflict"), v.Status.Reason)
		}
		require.Len(t, running, 1, "%v", controller.Format(d.Events))
		if apart {
			require.True(t, running[first], "the newcomer gives way")
		}
	})
}

// TestClaimToAPIIsTheSameForBothGroups checks that exactly one of two groups that list an API loses it, and that both
// groups agree which one.
// OLM's case: overlap of namespaces and APIs: add, nothing, conflict or remove.
func TestClaimToAPIIsTheSameForBothGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		both := [2]*v1alpha1.ClusterServiceVersion{operator("cool.v1", 1), operator("cool.v1", 1)}
		groups := [2]*operatorsv1.OperatorGroup{group(), group()}
		for i, ns := range []string{"east", "west"} {
			c, g := both[i], groups[i]
			c.Namespace, c.UID = ns, typesUID(olmcore.Ref{Name: ns})
			c.CreationTimestamp = *ago(time.Duration(rapid.IntRange(1, 3).Draw(t, "age")) * time.Hour)
			c.Annotations = map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": ns, "olm.targetNamespaces": "shared"}
			hold(c, rapid.SampledFrom([]phaseName{pending, succeeded, failed}).Draw(t, "phase"), "InstallSucceeded", "", time.Hour)
			g.Namespace, g.UID, g.Status.Namespaces = ns, c.UID, []string{"shared"}
		}
		var givesWay []string
		for i, c := range both {
			in := input(none, "", "")
			in.ClusterServiceVersion, in.OperatorGroups = c, olmcore.Found(groups[i])
			in.OtherGroups, in.OtherProviders = olmcore.Found(groups[1-i]), olmcore.Found(both[1-i])
			if assess(t, in).Rule == "RemoveProvidedAPIs" {
				givesWay = append(givesWay, c.Namespace)
			}
		}
		want := "west" // by name, when all else is equal
		rank := func(c *v1alpha1.ClusterServiceVersion) string {
			return fmt.Sprintf("%t %d", c.Status.Phase != succeeded, c.CreationTimestamp.Unix())
		}
		if rank(both[1]) < rank(both[0]) {
			want = "east"
		}
		require.Equal(t, []string{want}, givesWay)
	})
}

const coolAPI = "Cool.v1.example.com"

// otherGroup returns an OperatorGroup of another namespace that lists the API of the CSV of input.
func otherGroup(apis string, watched ...string) *operatorsv1.OperatorGroup {
	g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "group", UID: "other", ResourceVersion: "6"}}
	g.Annotations = map[string]string{"olm.providedAPIs": apis}
	g.Status.Namespaces = watched
	return g
}

// staticGroup returns otherGroup with static APIs.
func staticGroup(apis string, watched ...string) *operatorsv1.OperatorGroup {
	g := otherGroup(apis, watched...)
	g.Spec.StaticProvidedAPIs = true
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
// static group: Failed; a static group without conflict: the installation continues; a conflict that lasts: Failed,
// reported once; the namespaces of a group include its own, unless it is global; odd entries in a list of provided APIs
// are ignored; groups intersect in each other's own namespaces too; overlap of namespaces and APIs: add, nothing,
// conflict or remove.
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
		"nothing listed yet: the APIs are added": {"", nil, "AddProvidedAPIs", [2]string{}, coolAPI},
		"one of two is listed": {coolAPI, func(in *csv.Input) {
			d := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
			d.Owned = append(d.Owned, v1alpha1.CRDDescription{Name: "hots.example.com", Version: "v1", Kind: "Hot"})
		}, "AddProvidedAPIs", [2]string{}, coolAPI + ",Hot.v1.example.com"},
		"others are kept, odd entries are not":       {"Z.v1.z, nonsense,A.v1.a", nil, "AddProvidedAPIs", [2]string{}, "A.v1.a,Cool.v1.example.com,Z.v1.z"},
		"listed: the installation continues":         {"A.v1.a, " + coolAPI, nil, "Health", [2]string{}, "-"},
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
		"both list them and run: the younger loses them": {coolAPI, func(in *csv.Input) {
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Found(competitor(succeeded, older))
		}, "RemoveProvidedAPIs", [2]string{}, ""},
		"of several groups that list them, the strongest counts": {coolAPI, func(in *csv.Input) {
			first := otherGroup(coolAPI, "ns")
			first.Namespace, first.UID = "another", "another"
			in.OtherGroups, in.OtherProviders = olmcore.Found(first, otherGroup(coolAPI, "ns")), olmcore.Found(competitor(succeeded, older))
		}, "RemoveProvidedAPIs", [2]string{}, ""},
		"both list them and run: the older stays": {coolAPI, func(in *csv.Input) {
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Found(competitor(succeeded, younger))
		}, "Health", [2]string{}, "-"},
		"both list them, and no other operator provides them": {coolAPI, func(in *csv.Input) {
			in.OtherGroups = olmcore.Found(otherGroup(coolAPI, "ns"))
		}, "Health", [2]string{}, "-"},
		"a static group lists them, and no operator provides them there": {coolAPI, func(in *csv.Input) {
			in.OtherGroups = olmcore.Found(staticGroup(coolAPI, "ns"))
		}, "RemoveProvidedAPIs", [2]string{}, ""},
		"a static group lists them everywhere": {coolAPI, func(in *csv.Input) {
			in.OtherGroups = olmcore.Found(staticGroup(coolAPI, ""))
		}, "RemoveProvidedAPIs", [2]string{}, ""},
		"a static group lists them, and its operator is weaker": {coolAPI, func(in *csv.Input) {
			in.OtherGroups, in.OtherProviders = olmcore.Found(staticGroup(coolAPI, "ns")), olmcore.Found(competitor(failed, younger))
		}, "RemoveProvidedAPIs", [2]string{}, ""},
		"a static group lists them, and our group does not": {"", func(in *csv.Input) {
			in.OtherGroups = olmcore.Found(staticGroup(coolAPI, "ns"))
		}, "APIConflict", conflict, "-"},
		"a static group lists them, namespaces apart": {coolAPI, func(in *csv.Input) {
			in.OtherGroups = olmcore.Found(staticGroup(coolAPI, "elsewhere"))
		}, "Health", [2]string{}, "-"},
		"a static group lists another version of them": {coolAPI, func(in *csv.Input) {
			in.OtherGroups = olmcore.Found(staticGroup("Cool.v2.example.com", "ns"))
		}, "Health", [2]string{}, "-"},
		"our static group lists them, and the other group has a stronger operator": {coolAPI, func(in *csv.Input) {
			in.OperatorGroups.Items[0].Spec.StaticProvidedAPIs = true
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Found(competitor(succeeded, older))
		}, "Health", [2]string{}, "-"},
		"two static groups list them, and no operator provides them there": {coolAPI, func(in *csv.Input) {
			in.OperatorGroups.Items[0].Spec.StaticProvidedAPIs = true
			in.OtherGroups = olmcore.Found(staticGroup(coolAPI, "ns"))
		}, "Health", [2]string{}, "-"},
		"a static group cannot be added to": {"", func(in *csv.Input) { in.OperatorGroups.Items[0].Spec.StaticProvidedAPIs = true }, "APIConflict", static, "-"},
		"a static group that lists them":    {coolAPI, func(in *csv.Input) { in.OperatorGroups.Items[0].Spec.StaticProvidedAPIs = true }, "Health", [2]string{}, "-"},
		"the other groups were not read":    {coolAPI, func(in *csv.Input) { in.OtherGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{} }, "NotObserved", [2]string{}, "-"},
		"the other operators were not read": {coolAPI, func(in *csv.Input) {
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
		}, "NotObserved", [2]string{}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthy(t)
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

func TestAPIConflictKeepsDeploymentOfAnotherOwner(t *testing.T) {
	in := healthy(t)
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

// TestAPIsInTheAnnotationOfAnOperatorGroup checks that an API is found in the annotation of a group in any order and
// among any other text, and that nothing else is taken for it.
func TestAPIsInTheAnnotationOfAnOperatorGroup(t *testing.T) {
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

// TestStaticGroupProtectsItsAPIs changes groups around an operator that runs, until a static group and the operator's
// own group have a namespace in common. The operator fails, and runs again once the static group is changed.
func TestStaticGroupProtectsItsAPIs(t *testing.T) {
	changed := func(g *operatorsv1.OperatorGroup) *operatorsv1.OperatorGroup { return g.DeepCopy() }
	for name, c := range map[string]struct {
		own, static []string // the targets at first
		apis        string   // what the static group lists at first
		change      func(own, static *operatorsv1.OperatorGroup)
	}{
		"the operator's group is extended": {[]string{"ns"}, []string{"shared"}, coolAPI,
			func(own, _ *operatorsv1.OperatorGroup) { own.Spec.TargetNamespaces = []string{"ns", "shared"} }},
		"the operator's group is extended to all namespaces": {[]string{"ns"}, []string{"shared"}, coolAPI,
			func(own, _ *operatorsv1.OperatorGroup) { own.Spec.TargetNamespaces = nil }},
		"the static group is extended": {[]string{"ns", "shared"}, []string{"other"}, coolAPI,
			func(_, static *operatorsv1.OperatorGroup) { static.Spec.TargetNamespaces = []string{"shared"} }},
		"the static group is extended to all namespaces": {[]string{"ns"}, []string{"other"}, coolAPI,
			func(_, static *operatorsv1.OperatorGroup) { static.Spec.TargetNamespaces = nil }},
		"the static group lists the API later": {[]string{"ns", "shared"}, []string{"shared"}, "",
			func(_, static *operatorsv1.OperatorGroup) {
				static.Annotations = map[string]string{"olm.providedAPIs": coolAPI}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			cluster, driver := newWorld(csv.Config{})
			objects := fromFiles("base.yaml", "v1.yaml")
			v := objects[len(objects)-1].(*v1alpha1.ClusterServiceVersion)
			v.Spec.InstallStrategy.StrategySpec.ClusterPermissions = nil
			for _, mode := range []v1alpha1.InstallModeType{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
				v.Spec.InstallModes = append(v.Spec.InstallModes, v1alpha1.InstallMode{Type: mode, Supported: true})
			}
			v.Spec.InstallModes = v.Spec.InstallModes[len(v.Spec.InstallModes)-4:]
			newGroup := func(namespace string, targets []string) *operatorsv1.OperatorGroup {
				g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}}
				g.Spec.TargetNamespaces = targets
				return g
			}
			static := newGroup("other", c.static)
			static.Spec.StaticProvidedAPIs = true
			if c.apis != "" {
				static.Annotations = map[string]string{"olm.providedAPIs": c.apis}
			}
			require.NoError(t, cluster.Create(objects[1], newGroup("ns", c.own), static,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shared"}},
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool"}}, v))
			status := func() v1alpha1.ClusterServiceVersionStatus {
				require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
				return fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", v.Name).Status
			}
			require.Equal(t, succeeded, status().Phase)

			groupIn := func(namespace string) *operatorsv1.OperatorGroup {
				return fake.Find[*operatorsv1.OperatorGroup](cluster, namespace, "group")
			}
			own, other := changed(groupIn("ns")), changed(groupIn("other"))
			c.change(own, other)
			require.NoError(t, cluster.Update(own))
			require.NoError(t, cluster.Update(other))
			got := status()
			require.Equal(t, failed, got.Phase, got.Message)
			require.Equal(t, reason("InterOperatorGroupOwnerConflict"), got.Reason)
			require.Empty(t, groupIn("ns").Annotations["olm.providedAPIs"])
			require.Equal(t, coolAPI, groupIn("other").Annotations["olm.providedAPIs"])

			other = changed(groupIn("other"))
			other.Annotations = nil
			require.NoError(t, cluster.Update(other))
			got = status()
			require.Equal(t, succeeded, got.Phase, got.Message)
			require.Equal(t, coolAPI, groupIn("ns").Annotations["olm.providedAPIs"])
		})
	}
}
