// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
)

// TestALookupThatIsDecided is left as it is, whatever there is.
func TestALookupThatIsDecided(t *testing.T) {
	for name, conditions := range map[string][]v1alpha1.BundleLookupCondition{
		"failed": {{Type: v1alpha1.BundleLookupPending, Status: "True"}, {Type: v1alpha1.BundleLookupFailed, Status: "True", Reason: "x"}},
		"done":   nil,
	} {
		in := unpacking(t, func(in *unpack.Input) { in.Lookup.Conditions, in.ConfigMap = conditions, nil })
		out := unpackRound(t, in)
		require.True(t, out.Empty(), name)
		require.Equal(t, conditions, out.Lookup.Conditions, name)
	}
}

// TestWhatUnpackingWaitsFor: objects that go, or whose UID is not known, hold it
// up, and nothing is made for them.
func TestWhatUnpackingWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*unpack.Input)
		want   string
	}{
		"a CatalogSource without UID": {func(in *unpack.Input) { in.CatalogSource.UID = "" }, "Pending CatalogSourceMissing: referenced catalogsource not found"},
		"a CatalogSource that goes":   {func(in *unpack.Input) { in.CatalogSource.DeletionTimestamp = ago(0) }, "Pending CatalogSourceMissing: referenced catalogsource not found"},
		"a ConfigMap that goes":       {func(in *unpack.Input) { in.ConfigMap.DeletionTimestamp = ago(0) }, notStarted},
		"a ConfigMap without UID":     {func(in *unpack.Input) { in.ConfigMap.UID = "" }, notStarted},
		"a full ConfigMap that goes": {func(in *unpack.Input) {
			in.ConfigMap = filled(map[string]string{"csv.yaml": etcdCSV})
			in.ConfigMap.DeletionTimestamp = ago(0)
		}, notStarted},
		"an account that goes": {func(in *unpack.Input) { in.ServiceAccount.DeletionTimestamp = ago(0) }, notStarted},
		"a Role that goes":     {func(in *unpack.Input) { in.Role.DeletionTimestamp = ago(0) }, notStarted},
		"a binding that goes":  {func(in *unpack.Input) { in.RoleBinding.DeletionTimestamp = ago(0) }, notStarted},
	} {
		t.Run(name, func(t *testing.T) {
			out := unpackRound(t, unpacking(t, c.change))
			require.Empty(t, out.Actions)
			require.Equal(t, []string{c.want}, conditionsOf(out.Lookup))
		})
	}
}

// TestPermissionsOfUnpackingAreMended: a binding of something else is made anew, a
// Role keeps what it had.
func TestPermissionsOfUnpackingAreMended(t *testing.T) {
	for name, change := range map[string]func(*rbacv1.RoleBinding){
		"another role":    func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "other" },
		"another subject": func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "other" },
	} {
		out := unpackRound(t, unpacking(t, func(in *unpack.Input) { change(in.RoleBinding) }))
		require.Equal(t, []string{"delete RoleBinding olm/" + bundleName + " (UnpackObjectDiffers)"}, describe(out.Result), name)
		require.NotEmpty(t, out.Actions[0].(olmcore.Delete).Target.UID, name)
	}
	theirs := rbacv1.PolicyRule{Verbs: []string{"list"}}
	out := unpackRound(t, unpacking(t, func(in *unpack.Input) { in.Role.Rules = []rbacv1.PolicyRule{theirs} }))
	rules := out.Actions[0].(olmcore.Update).After.(*rbacv1.Role).Rules
	require.Equal(t, theirs, rules[0])
	require.Equal(t, []string{bundleName}, rules[1].ResourceNames)
}

// TestWhoseConfigMapItIs: one that says which image it holds is the bundle's, and
// gets its owner although nothing else is to be done.
func TestWhoseConfigMapItIs(t *testing.T) {
	out := unpackRound(t, unpacking(t, func(in *unpack.Input) {
		in.ConfigMap = filled(map[string]string{"csv.yaml": etcdCSV})
		in.ConfigMap.Labels, in.ConfigMap.OwnerReferences = nil, nil
	}))
	require.Empty(t, out.Diagnostics)
	require.NotNil(t, out.Bundle)
	require.Equal(t, bundleImage, out.Bundle.Image)
	require.True(t, olmcore.OwnedBy(out.Actions[0].(olmcore.Update).After, "uid-cool"))
}

// TestABundleThatIsNoneHasNoDigest.
func TestABundleThatIsNoneHasNoDigest(t *testing.T) {
	out := unpackRound(t, unpacking(t, func(in *unpack.Input) {
		in.ConfigMap = filled(map[string]string{"csv.yaml": etcdCSV})
		in.Lookup.Properties = "{"
	}))
	require.Empty(t, out.Digest)
	require.Nil(t, out.Bundle)
}

// TestTheTimeOfALookupsCondition is that of its reason.
func TestTheTimeOfALookupsCondition(t *testing.T) {
	same(t, ago(0), unpackRound(t, unpacking(t, withJobs(madeJob(t)))).Lookup.GetCondition(v1alpha1.BundleLookupPending).LastTransitionTime)
	same(t, ago(time.Minute), unpackRound(t, unpacking(t)).Lookup.GetCondition(v1alpha1.BundleLookupPending).LastTransitionTime)
}

// TestWhichJobCounts: of those that run the newest, and of a Job that OLM made the
// image that it pulls.
func TestWhichJobCounts(t *testing.T) {
	older := madeJob(t, ended(batchv1.JobComplete, time.Hour), func(j *batchv1.Job) { j.Name, j.CreationTimestamp = "a", *ago(time.Hour) })
	running := madeJob(t, func(j *batchv1.Job) { j.Name = "b" })
	require.Contains(t, conditionsOf(unpackRound(t, unpacking(t, withJobs(older, running))).Lookup)[0], "Pending JobIncomplete")

	theirs := madeJob(t, func(j *batchv1.Job) {
		j.Annotations = nil
		j.Spec.Template.Spec.InitContainers[0].Image, j.Spec.Template.Spec.InitContainers[1].Image = bundleImage, "other"
	})
	require.Equal(t, []string{"delete Job olm/" + bundleName + " (UnpackObjectDiffers)"}, describe(unpackRound(t, unpacking(t, withJobs(theirs))).Result))
}

// TestWhichPodsAreTold: those of the Job that wait.
func TestWhichPodsAreTold(t *testing.T) {
	pod := func(job string, phase corev1.PodPhase, scheduled corev1.ConditionStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: inOLM("pod")}
		p.Labels = map[string]string{"job-name": job}
		p.Status = corev1.PodStatus{Phase: phase, InitContainerStatuses: []corev1.ContainerStatus{{Name: "pull"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: scheduled, Message: "no node"}}}
		return p
	}
	const waits = ": Unpack pod(olm/pod) container(pull) is pending"
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"one that waits":           {pod(bundleName, corev1.PodPending, corev1.ConditionTrue), waits},
		"one without a node":       {pod(bundleName, corev1.PodPending, corev1.ConditionFalse), ": Unpack pod(olm/pod) is not scheduled: no node | " + waits[2:]},
		"one that runs":            {pod(bundleName, corev1.PodRunning, corev1.ConditionTrue), ""},
		"one of another Job alone": {pod("other", corev1.PodPending, corev1.ConditionTrue), ": Unpack job olm/" + bundleName + " has no pods"},
	} {
		out := unpackRound(t, unpacking(t, withJobs(madeJob(t)), func(in *unpack.Input) { in.Pods = olmcore.Found(c.pod) }))
		require.Equal(t, []string{incomplete + c.want}, conditionsOf(out.Lookup), name)
	}
}

// TestTwoGroupsSetNothing.
func TestTwoGroupsSetNothing(t *testing.T) {
	timeout := func(in *unpack.Input) {
		in.OperatorGroups = olmcore.Found(group(), group(func(g *operatorsv1.OperatorGroup) {
			g.Name, g.Annotations = "two", map[string]string{unpack.AnnotationTimeout: "1s"}
		}))
	}
	job := unpackRound(t, unpacking(t, timeout)).Actions[0].(olmcore.Create).Object.(*batchv1.Job)
	require.Equal(t, int64(600), *job.Spec.ActiveDeadlineSeconds)
}

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
		in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), func(in *installplan.Input) { in.ConfigMaps = cms })
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
	lost, err := installplan.LostBundles(input(plan(installing, []*v1alpha1.Step{ref, ref.DeepCopy()}, started(time.Second), func(p *v1alpha1.InstallPlan) {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{other, elsewhere, lookup(t)}
	})))
	require.NoError(t, err)
	require.Len(t, lost, 1)
	require.Equal(t, "olm", lost[0].CatalogSourceRef.Namespace)
	require.Equal(t, bundleImage, lost[0].Path)
}

// TestWhatABundleMustSay: the ConfigMap of another image, or of another
// namespace's catalog, is not the operator's.
func TestWhatABundleMustSay(t *testing.T) {
	full := filled(map[string]string{"csv.yaml": etcdCSV})
	o := olmcore.Operator{Name: "etcd.v1", Package: "a", Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"}, Bundle: olmcore.Bundle{Image: bundleImage}}
	for name, c := range map[string]struct {
		change func(*corev1.ConfigMap)
		made   bool
	}{
		"the operator's":       {func(*corev1.ConfigMap) {}, true},
		"of another namespace": {func(cm *corev1.ConfigMap) { cm.Namespace = "elsewhere" }, false},
		"of another image":     {func(cm *corev1.ConfigMap) { cm.Annotations["olm.sourceImage"] = "other" }, false},
		"that goes":            {func(cm *corev1.ConfigMap) { cm.DeletionTimestamp = ago(0) }, false},
	} {
		cm := full.DeepCopy()
		c.change(cm)
		in := createInput([]*v1alpha1.Subscription{subscription("a")}, o)
		in.ConfigMaps = olmcore.Found(cm)
		require.Equal(t, c.made, len(planned(t, in).Actions) == 1, name)
	}
}

// TestTheDigestTellsFilesApart: where one ends and what it is called.
func TestTheDigestTellsFilesApart(t *testing.T) {
	digest := func(files map[string]string) string {
		files["csv.yaml"] = etcdCSV
		out := unpackRound(t, unpacking(t, func(in *unpack.Input) { in.ConfigMap = filled(files) }))
		require.NotNil(t, out.Bundle)
		return out.Digest
	}
	seen := map[string]bool{}
	for _, files := range []map[string]string{{"a": "b"}, {"b": "b"}, {"a": "bc"}, {"ab": "c"}, {"a": "", "b": ""}, {"a": "b", "c": ""}, {"a": "bc", "d": ""}} {
		d := digest(files)
		require.False(t, seen[d], "%v", files)
		seen[d] = true
	}
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
