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
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// surface is what a group with these targets can touch: all is nil.
func surface(own string, targets []string) []string {
	if slices.Equal(targets, []string{""}) {
		return nil
	}
	return append(slices.Clone(targets), own)
}

func meet(a, b []string) bool {
	return a == nil || b == nil || slices.ContainsFunc(a, func(n string) bool { return slices.Contains(b, n) })
}

// conflicts reports whether a CSV of one namespace finds the API taken by the group of another.
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

// TestGroupsMeetWhereTheirNamespacesDo: by the algebra of sets of namespaces, in which all meets everything, and
// whichever of two groups is asked.
// OLM's cases: a group's surface includes its own namespace unless it is global; intersection, union and containment of
// namespaces, with all; groups meet in each other's own namespaces too.
func TestGroupsMeetWhereTheirNamespacesDo(t *testing.T) {
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

// TestTargetsSurviveTheirAnnotation: from the spec of a group through its status and the annotation of a CSV, none and
// all never become each other.
// OLM's cases: a selector that matches: status and annotations; all namespaces.
func TestTargetsSurviveTheirAnnotation(t *testing.T) {
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

// TestOneOperatorWinsAnAPI: two teams install the same operator for namespaces that meet. Whatever is looked at first,
// one group lists the API in the end, its operator runs, and it is that of the older version.
func TestOneOperatorWinsAnAPI(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		c, d := newWorld(csv.Config{})
		objects, err := fromFiles("base.yaml", "v1.yaml")
		require.NoError(t, err)
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
		require.Len(t, running, 1, "%v", fake.Format(d.Events))
		if apart {
			require.True(t, running[first], "the newcomer gives way")
		}
	})
}

// TestTheClaimToAnAPIDoesNotDependOnWhoIsAsked: of two groups that both list an API just one gives way, and it is the
// same whichever is asked.
// OLM's case: overlap of namespaces and APIs: add, nothing, conflict or remove.
func TestTheClaimToAnAPIDoesNotDependOnWhoIsAsked(t *testing.T) {
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
