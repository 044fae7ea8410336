// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// labelsAfter returns the labels of each object that an Outcome updates.
func labelsAfter(out subscription.Outcome) map[string][]string {
	found := map[string][]string{}
	for _, a := range out.Actions {
		if u, ok := a.(olmcore.Update); ok {
			found[u.Target.Kind+"/"+u.Target.Name] = slices.Sorted(maps.Keys(u.After.GetLabels()))
		}
	}
	return found
}

// TestSharedObjectsGetFewComponentLabels checks that a user who can label a CSV cannot fill a shared object with
// labels.
func TestSharedObjectsGetFewComponentLabels(t *testing.T) {
	crd := func(have int) *apiextensionsv1.CustomResourceDefinition {
		o := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: meta("etcds.example.com")}
		o.Namespace, o.Annotations = "", map[string]string{"operatorframework.io/installed-alongside-1": "ops/etcd.v1"}
		o.Labels = map[string]string{"app": "x"}
		for i := range have {
			o.Labels[fmt.Sprintf("%sp%d.other", olmcore.ComponentLabelPrefix, i)] = ""
		}
		return o
	}
	version := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "etcds.example.com"}}
		c.Labels = maps.Clone(c.Labels)
		for i := range 5000 {
			c.Labels[fmt.Sprintf("%sp%d.victim", olmcore.ComponentLabelPrefix, i)] = ""
		}
	})
	for have, want := range map[int]int{0: 1, 99: 100, 100: 100} {
		component := crd(have)
		in := inputOf(newSub("a", follows("p", "etcd.v1"), installed), newPlan("p", "Complete"), version)
		in.Components = []olmcore.Object{component}
		got := slices.Collect(maps.Keys(component.Labels))
		for _, labels := range labelsAfter(reconcile(t, answered(in))) {
			got = labels
		}
		require.Len(t, got, 1+want, "app, and component labels")
	}
}

// OLM's cases: an owned definition has the label, and again after removal.
func TestWhichObjectsGetAComponentLabel(t *testing.T) {
	owner := newCSV("etcd.v1")
	byReference := func(o olmcore.Object) olmcore.Object {
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(owner)})
		return o
	}
	byLabels := func(o olmcore.Object, extra ...string) olmcore.Object {
		labels := olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: ns, Name: "etcd.v1"}.Labels()
		if len(extra) > 0 {
			labels[olmcore.LabelOwnerUID] = extra[0]
		}
		o.SetLabels(labels)
		return o
	}
	labelled := func(o olmcore.Object, by olmcore.Owner) olmcore.Object { o.SetLabels(by.Labels()); return o }
	clusterWide := func(o olmcore.Object) olmcore.Object { o.SetNamespace(""); return o }
	partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta("secret")}
	crd := func(came string) olmcore.Object {
		o := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: meta("etcds.example.com")}
		o.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": came}
		return o
	}

	for name, tc := range map[string]struct {
		component olmcore.Object
		want      bool
	}{
		"owned by reference":                    {byReference(&corev1.ServiceAccount{ObjectMeta: meta("x")}), true},
		"owned by reference, metadata only":     {byReference(partial.DeepCopy()), true},
		"owned by labels, cluster-wide":         {clusterWide(byLabels(&rbacv1.ClusterRole{ObjectMeta: meta("x")})), true},
		"owned by labels, the same UID":         {byLabels(&rbacv1.ClusterRole{ObjectMeta: meta("x")}, "etcd.v1-uid"), true},
		"owned by labels, another UID":          {byLabels(&rbacv1.ClusterRole{ObjectMeta: meta("x")}, "older"), false},
		"owned by labels, of another namespace": {clusterWide(labelled(&rbacv1.ClusterRole{ObjectMeta: meta("x")}, olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "other", Name: "etcd.v1"})), false},
		"owned by labels, of another kind":      {clusterWide(labelled(&rbacv1.ClusterRole{ObjectMeta: meta("x")}, olmcore.Owner{Kind: "OperatorGroup", Namespace: ns, Name: "etcd.v1"})), false},
		"a CRD that the CSV does not own":       {clusterWide(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: meta("vaults.example.com")}), false},
		"a CRD that the CSV owns":               {clusterWide(crd("ops/etcd.v1")), true},
		"a CRD that the CSV claims":             {clusterWide(crd("other/etcd.v1")), false},
		"owned by another":                      {&corev1.Service{ObjectMeta: meta("x")}, false},
		"owned by an earlier CSV of that name": {func() olmcore.Object {
			o := byReference(&corev1.Service{ObjectMeta: meta("x")})
			o.GetOwnerReferences()[0].UID = "older"
			refs := o.GetOwnerReferences()
			refs[0].UID = "older"
			o.SetOwnerReferences(refs)
			return o
		}(), false},
		"being deleted": {func() olmcore.Object {
			o := byReference(&corev1.Service{ObjectMeta: meta("x")})
			o.SetDeletionTimestamp(secondp(9))
			return o
		}(), false},
		"an InstallPlan is not ours to label": {byReference(newPlan("x", "")), false},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(newSub("a", follows("p", "etcd.v1"), installed), newPlan("p", "Complete"),
				newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
					c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "etcds.example.com"}}
				}))
			in.Components = []olmcore.Object{tc.component}
			out := reconcile(t, answered(in))
			got := labelsAfter(out)
			require.Equal(t, tc.want, len(got) == 1, "%v", got)
			for _, labels := range got {
				require.Contains(t, labels, labelKey)
				for key := range tc.component.GetLabels() {
					require.Contains(t, labels, key, "a label was lost")
				}
			}
			if !tc.want {
				require.Empty(t, out.Actions)
			}
		})
	}
}

func TestTwoSubscriptionsLabelOneCSV(t *testing.T) {
	second := newSub("b", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) {
		s.Spec.Package, s.Labels = "other", map[string]string{"operators.coreos.com/other.ops": ""}
	})
	plan := newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) {
		p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(second))
	})
	in := answered(inputOf(newSub("a", follows("p", "etcd.v1"), installed), second, plan, newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = nil })))
	require.Equal(t, map[string][]string{"ClusterServiceVersion/etcd.v1": {labelKey, "operators.coreos.com/other.ops"}}, labelsAfter(reconcile(t, in)))
}

func TestLabelIsWrittenAfterTheStatusOfTheSameObject(t *testing.T) {
	sub := newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Labels = nil })
	in := inputOf(sub, newPlan("p", "Installing"))
	out := reconcile(t, in)
	require.Len(t, out.Actions, 1)
	require.Empty(t, labelsAfter(out))
	next := sub.DeepCopy()
	next.Status = statusOf(t, in, out, "a")
	require.Equal(t, map[string][]string{"Subscription/a": {labelKey}}, labelsAfter(reconcile(t, inputOf(next, newPlan("p", "Installing")))))
}

// TestLabelKeyFollowsThePackageName compares the fast check for a label with olmcore.ComponentLabelKey.
func TestLabelKeyFollowsThePackageName(t *testing.T) {
	for _, pkg := range []string{"etcd", "a", strings.Repeat("x", 59), strings.Repeat("x", 60), strings.Repeat("x", 63), strings.Repeat("x", 80),
		strings.Repeat("x", 58) + "....", "that-come-at-me-bro" + strings.Repeat("-", 60), "._-", "ü", strings.Repeat("ü", 40)} {
		key, err := olmcore.ComponentLabelKey(pkg, ns)
		sub := newSub("a", func(s *v1alpha1.Subscription) { s.Spec.Package, s.Labels = pkg, nil })
		out := reconcile(t, answered(inputOf(sub)))
		if err != nil {
			require.Equal(t, "LabelKeyInvalid", reasons(out.Result), pkg)
			require.Empty(t, out.Actions)
			continue
		}
		require.Equal(t, map[string][]string{"Subscription/a": {key}}, labelsAfter(out), pkg)
		sub.Labels = map[string]string{key: "any value counts"}
		require.Empty(t, reconcile(t, answered(inputOf(sub))).Actions, pkg)
	}
}

// TestObjectsOfAnInstallingCSVAreLabelledLater checks that a CSV and its objects are not labelled while it is
// installed, because package csv writes the same objects then.
func TestObjectsOfAnInstallingCSVAreLabelledLater(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: meta("x")}
	for _, tc := range []struct {
		phase    v1alpha1.ClusterServiceVersionPhase
		labelled bool // the CSV itself, which then brings the label to what it owns
		at       int
		want     string
	}{
		{"", false, 60, ""}, {"Pending", false, 60, ""}, {"InstallReady", false, 60, ""}, {"Installing", true, 60, ""}, {"Replacing", true, 60, ""},
		{"Succeeded", false, 60, "etcd.v1"}, {"Succeeded", true, 60, "x"}, {"Failed", false, 60, "etcd.v1"},
		{"Pending", false, 50 + 119, ""}, {"Pending", false, 50 + 120, "etcd.v1"}, {"Pending", true, 50 + 120, "x"},
	} {
		c := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
			c.Status.Phase, c.Status.LastTransitionTime = tc.phase, secondp(50)
			if !tc.labelled {
				c.Labels = nil
			}
		})
		account.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)}
		in := answered(inputOf(newSub("a", follows("p", "etcd.v1"), installed), newPlan("p", "Complete", started(3), done(9)), c, account))
		in.Now = second(tc.at).Time
		out := reconcile(t, in)
		var got []string
		for _, a := range out.Actions {
			_, target, _ := a.Describe()
			got = append(got, target.Name)
		}
		require.Equal(t, tc.want, strings.Join(got, " "), "%+v", tc)
		if tc.want == "" {
			require.Equal(t, second(50).Add(subscription.AuditGrace).Sub(in.Now), out.RequeueAfter, "%+v", tc)
		}
	}
}
