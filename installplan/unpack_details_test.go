// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestWhereUnpackedContentIsLookedFor: in the ConfigMap of that name and namespace,
// under a digest where the plan has one; what it replaces comes from the plan.
func TestWhereUnpackedContentIsLookedFor(t *testing.T) {
	reference := func(more string) *v1alpha1.Step {
		return step("etcd.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "etcd.v1", `{"kind":"ConfigMap","name":"`+bundleName+
			`","namespace":"olm","catalogSourceName":"cool","catalogSourceNamespace":"olm","replaces":"etcd.v0","properties":"{}"`+more+`}`)
	}
	cm := filled(map[string]string{"csv.yaml": etcdCSV})
	elsewhere := cm.DeepCopy()
	elsewhere.Namespace = "elsewhere"
	round := func(s *v1alpha1.Step, cms ...*corev1.ConfigMap) (installplan.Input, olmcore.Result) {
		in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), func(in *installplan.Input) { in.ConfigMaps = olmcore.Found(cms...) })
		return in, reconcile(t, in)
	}
	_, r := round(reference(""), elsewhere, cm)
	require.Equal(t, "etcd.v0", r.Actions[1].(olmcore.Create).Object.(*v1alpha1.ClusterServiceVersion).Spec.Replaces)
	for want, s := range map[string]*v1alpha1.Step{
		"bundle content of etcd.v1 changed since the plan was made": reference(`,"digest":"other"`),
		"couldn't find unpacked step for ":                          func() *v1alpha1.Step { s := reference(""); s.Resource.Version = "v9"; return s }(),
	} {
		in, r := round(s, cm)
		require.Contains(t, statusOf(in, r).Message, want)
	}
	in, r := round(reference(""), elsewhere)
	require.Contains(t, statusOf(in, r).Message, "error finding unpacked bundle configmap for ref ")
}

// TestWhichLookupsAreLost: the one of the reference's image and namespace, once.
func TestWhichLookupsAreLost(t *testing.T) {
	ref := step("etcd.v1", "", "v1", "ConfigMap", "x", `{"kind":"ConfigMap","name":"`+bundleName+
		`","namespace":"olm","catalogSourceName":"cool","catalogSourceNamespace":"olm","replaces":"","properties":""}`)
	other, elsewhere := lookup(t), lookup(t)
	other.Path = "another"
	elsewhere.CatalogSourceRef = &corev1.ObjectReference{Namespace: "elsewhere", Name: "cool"}
	lost, err := lostBundles(input(plan(installing, []*v1alpha1.Step{ref, ref.DeepCopy()}, started(time.Second), func(p *v1alpha1.InstallPlan) {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{other, elsewhere, lookup(t)}
	})))
	require.NoError(t, err)
	require.Len(t, lost, 1)
	require.Equal(t, "olm", lost[0].CatalogSourceRef.Namespace)
	require.Equal(t, bundleImage, lost[0].Path)
}

// TestAKindIsServedByWhatIsThere: a definition that goes, a version that is not
// served, and one whose names were not accepted serve nothing.
func TestAKindIsServedByWhatIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		served bool
	}{
		"served":               {func(*apiextensionsv1.CustomResourceDefinition) {}, true},
		"going":                {func(c *apiextensionsv1.CustomResourceDefinition) { c.DeletionTimestamp = ago(0) }, false},
		"a version unserved":   {func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Served = false }, false},
		"names not accepted":   {func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions[0].Status = "False" }, false},
		"nothing established":  {func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions[1].Status = "False" }, false},
		"of another API group": {func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Group = "other.com" }, false},
	} {
		crd := installed(crdObject("v1"), true)
		c.change(crd)
		s := step("", "example.com", "v1", "Thing", "x", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"}}`)
		in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(crd))
		in.Config.SupportedKinds = []string{"Thing"}
		require.Equal(t, c.served, len(reconcile(t, in).Actions) == 2, name)
	}
}
