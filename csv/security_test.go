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
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

func coolIn(namespace, name string) *unstructured.Unstructured {
	o := cool(name)
	o.SetNamespace(namespace)
	return o
}

// uninstalling returns a healthy operator with spec.cleanup.enabled that was deleted ten seconds ago, and custom
// resources in three namespaces.
func uninstalling(t *testing.T) []olmcore.Object {
	in := leaving(t)
	in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
	in.ClusterServiceVersion.Annotations["olm.targetNamespaces"] = ""
	return []olmcore.Object{
		in.ClusterServiceVersion, in.Deployments.Items[0], in.CustomResourceDefinitions.Items[0],
		namespace("ns", nil), namespace("team", nil), namespace("victim", nil),
		coolIn("ns", "own"), coolIn("team", "theirs"), coolIn("victim", "precious"),
	}
}

// deletes lists the custom resources that the cleanup deletes in a world.
func deletes(t require.TestingT, world []olmcore.Object) []string {
	in := gathered(t, world...)
	out := reconciled(t, in)
	require.Empty(t, out.Operands, "Gather answers what the clean-up asks for")
	var found []string
	for _, a := range out.Actions {
		if verb, target, _ := a.Describe(); verb == olmcore.VerbDelete && target.Kind == "Cool" {
			found = append(found, strings.TrimPrefix(target.Namespace+"/"+target.Name, "/"))
		}
	}
	return found
}

// selecting returns the OperatorGroup of the CSV with these target namespaces in its status.
func selecting(targets ...string) *operatorsv1.OperatorGroup {
	g := group()
	g.Spec.TargetNamespaces, g.Status.Namespaces = targets, targets
	return g
}

// TestCleanupIsLimitedToSelectedNamespaces checks that only the namespaces that the OperatorGroup selects count,
// whatever the annotations of the CSV contain. A user who can write a CSV must not be able to delete custom resources
// of others.
func TestCleanupIsLimitedToSelectedNamespaces(t *testing.T) {
	annotate := func(value string) func(c *v1alpha1.ClusterServiceVersion) {
		return func(c *v1alpha1.ClusterServiceVersion) { c.Annotations["olm.targetNamespaces"] = value }
	}
	second := selecting("")
	second.Name, second.UID = "second", "second"
	terminating := selecting("")
	terminating.DeletionTimestamp, terminating.Finalizers = ago(time.Second), []string{"example.com/x"}
	fresh := selecting("")
	fresh.Status = operatorsv1.OperatorGroupStatus{}
	elsewhere := selecting("")
	elsewhere.Namespace = "team"
	for name, c := range map[string]struct {
		change func(c *v1alpha1.ClusterServiceVersion)
		groups []olmcore.Object
		want   []string
	}{
		"the annotation claims all namespaces, the group selects one": {annotate(""), []olmcore.Object{selecting("ns")}, []string{"ns/own"}},
		"it names the namespace of another tenant":                    {annotate("ns,victim"), []olmcore.Object{selecting("ns", "team")}, []string{"ns/own"}},
		"it names that one alone":                                     {annotate("victim"), []olmcore.Object{selecting("ns")}, nil},
		"the group selects all, as the annotation says":               {annotate(""), []olmcore.Object{selecting("")}, []string{"ns/own", "team/theirs", "victim/precious"}},
		"the group selects some, as the annotation says":              {annotate("ns,team"), []olmcore.Object{selecting("ns", "team")}, []string{"ns/own", "team/theirs"}},
		"the group selects more than the annotation":                  {annotate("team"), []olmcore.Object{selecting("")}, []string{"team/theirs"}},
		"an empty name among others is not all namespaces":            {annotate(",team"), []olmcore.Object{selecting("")}, []string{"team/theirs"}},
		"the group was deleted first":                                 {annotate(""), nil, []string{"ns/own"}},
		"the group is being deleted":                                  {annotate(""), []olmcore.Object{terminating}, []string{"ns/own"}},
		"two groups":                                                  {annotate(""), []olmcore.Object{selecting(""), second}, []string{"ns/own"}},
		"the group's targets are not computed":                        {annotate(""), []olmcore.Object{fresh}, []string{"ns/own"}},
		"a group of another namespace":                                {annotate(""), []olmcore.Object{elsewhere}, []string{"ns/own"}},
		"the CSV names another group": {func(c *v1alpha1.ClusterServiceVersion) {
			c.Annotations["olm.targetNamespaces"], c.Annotations["olm.operatorGroup"] = "", "other"
		}, []olmcore.Object{selecting("")}, []string{"ns/own"}},
		"the CSV names no group": {func(c *v1alpha1.ClusterServiceVersion) {
			c.Annotations = map[string]string{"olm.targetNamespaces": ""}
		}, []olmcore.Object{selecting("")}, []string{"ns/own"}},
		"there is no annotation": {func(c *v1alpha1.ClusterServiceVersion) { delete(c.Annotations, "olm.targetNamespaces") }, []olmcore.Object{selecting("")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			world := uninstalling(t)
			c.change(world[0].(*v1alpha1.ClusterServiceVersion))
			require.Equal(t, c.want, deletes(t, append(world, c.groups...)))
		})
	}
}

// TestClusterScopedOperandsNeedGlobalOperatorGroup checks that the status of the group must confirm that it selects all
// namespaces.
func TestClusterScopedOperandsNeedGlobalOperatorGroup(t *testing.T) {
	for name, c := range map[string]struct {
		groups    []olmcore.Object
		annotated string
		want      []string
	}{
		"a group of all": {[]olmcore.Object{selecting("")}, "", []string{"precious"}},
		"a group of one": {[]olmcore.Object{selecting("ns")}, "", nil},
		"no group":       {nil, "", nil},
		"the annotation names one namespace only": {[]olmcore.Object{selecting("")}, "ns", nil},
	} {
		t.Run(name, func(t *testing.T) {
			world := append(uninstalling(t)[:6], coolIn("", "precious"))
			world[0].(*v1alpha1.ClusterServiceVersion).Annotations["olm.targetNamespaces"] = c.annotated
			world[2].(*apiextensionsv1.CustomResourceDefinition).Spec.Scope = apiextensionsv1.ClusterScoped
			require.Equal(t, c.want, deletes(t, append(world, c.groups...)))
		})
	}
}

// TestOnlyOperandsOfOwnCRDsAreDeleted checks that a CSV that only names a CRD, as any user can write it, does not
// change the custom resources or the conversion of the CRD.
func TestOnlyOperandsOfOwnCRDsAreDeleted(t *testing.T) {
	all := []string{"ns/own", "team/theirs", "victim/precious"}
	owner := func(uid string) map[string]string {
		labels := map[string]string{"olm.owner": "cool.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion"}
		if uid != "" {
			labels["olm.owner.uid"] = uid
		}
		return labels
	}
	alongside := func(key, value string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{key: value}}
	}
	const prefix = "operatorframework.io/installed-alongside-"
	for name, c := range map[string]struct {
		marks metav1.ObjectMeta
		want  []string
	}{
		"a plan recorded that it came with this CSV": {alongside(prefix+"abc", "ns/cool.v1"), all},
		"no record, as after helm install":           {metav1.ObjectMeta{}, nil},
		"it came with another version":               {alongside(prefix+"abc", "ns/cool.v2"), nil},
		"it came with a CSV of another namespace":    {alongside(prefix+"abc", "team/cool.v1"), nil},
		"the name is in another annotation":          {alongside("example.com/installed", "ns/cool.v1"), nil},
		"owner labels of this CSV":                   {metav1.ObjectMeta{Labels: owner("")}, all},
		"owner labels of this incarnation":           {metav1.ObjectMeta{Labels: owner("uid-cool.v1")}, all},
		"owner labels of another incarnation":        {metav1.ObjectMeta{Labels: owner("before")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			world := append(uninstalling(t), selecting(""))
			crd := world[2].(*apiextensionsv1.CustomResourceDefinition)
			crd.Annotations, crd.Labels = c.marks.Annotations, c.marks.Labels
			require.Equal(t, c.want, deletes(t, world))

			in := leaving(t)
			in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{DeploymentName: "cool", Type: v1alpha1.ConversionWebhook}}
			crd = crd.DeepCopy()
			crd.Spec.Conversion = ourConversion()
			in.CustomResourceDefinitions.Items = []*apiextensionsv1.CustomResourceDefinition{crd}
			in.Neighbours.Items = append(in.Neighbours.Items, operator("cool.v2", 2))
			if c.want == nil {
				require.Equal(t, release, does(t, in), "the conversion webhook stays")
			} else {
				require.Equal(t, []string{"update CustomResourceDefinition cools.example.com"}, does(t, in))
			}
		})
	}
}

// TestAnnotationsDoNotExtendCleanup changes the metadata of a CSV as a tenant could, before or after its deletion. No
// custom resource is deleted outside the namespaces that the OperatorGroup selects and the namespace of the CSV.
func TestAnnotationsDoNotExtendCleanup(t *testing.T) {
	names := []string{"", "ns", "team", "victim", "*", "group", "other", "cool.v1", "ns,victim", ",", "victim,", cleanup.OverrideSkipOperands}
	keys := []string{"olm.targetNamespaces", "olm.operatorGroup", "olm.operatorNamespace", "olm.copiedFrom", "olm.owner.uid", cleanup.AnnotationCleanup}
	base := uninstalling(t)
	rapid.Check(t, func(t *rapid.T) {
		world := slices.Clone(base)
		c := base[0].(*v1alpha1.ClusterServiceVersion).DeepCopy()
		world[0] = c
		for range rapid.IntRange(0, 4).Draw(t, "edits") {
			key, value := rapid.SampledFrom(keys).Draw(t, "key"), rapid.SampledFrom(names).Draw(t, "value")
			if rapid.Bool().Draw(t, "label") {
				c.Labels, _ = olmcore.MergeMaps(c.Labels, map[string]string{key: value})
			} else {
				c.Annotations, _ = olmcore.MergeMaps(c.Annotations, map[string]string{key: value})
			}
		}
		selected := rapid.SampledFrom([][]string{nil, {"ns"}, {"ns", "team"}, {"team"}}).Draw(t, "selected")
		if selected != nil {
			world = append(world, selecting(selected...))
		}
		for _, name := range deletes(t, world) {
			where, _, _ := strings.Cut(name, "/")
			require.True(t, where == "ns" || slices.Contains(selected, where), name)
		}
	})
}

// TestOwnerLabelsInNamespaceDeleteNothing checks that owner labels do not count where tenants can write them.
func TestOwnerLabelsInNamespaceDeleteNothing(t *testing.T) {
	binding := func(namespace string) olmcore.Object {
		m := ours("binding")
		m.Namespace = namespace
		return &rbacv1.RoleBinding{ObjectMeta: m}
	}
	role := &rbacv1.Role{ObjectMeta: ours("role")}
	role.Namespace = "kube-system"
	in := leaving(t)
	in.Deployments.Items = nil
	in.Deletion.ClusterObjects.Items = []olmcore.Object{binding("victim"), role}
	require.Equal(t, release, does(t, in))
	in.Deletion.ClusterObjects.Items = []olmcore.Object{binding("kube-system")}
	require.Equal(t, []string{"delete RoleBinding binding"}, does(t, in))
}

// TestInstallationUsesOnlyTheAccountOfItsGroup checks that a ServiceAccount in the status of the group is not used if
// the spec does not name it, or if it is of another namespace. Nothing is installed as the controller instead.
func TestInstallationUsesOnlyTheAccountOfItsGroup(t *testing.T) {
	own := corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "limited"}
	foreign, renamed := own, own
	foreign.Namespace, renamed.Name = "kube-system", "admin"
	for name, c := range map[string]struct {
		ref  *corev1.ObjectReference
		want *corev1.ObjectReference
	}{"the group's own": {&own, &own}, "of another namespace": {&foreign, nil}, "of another name": {&renamed, nil}, "none yet": {nil, nil}} {
		t.Run(name, func(t *testing.T) {
			in := input(installReady, "AllRequirementsMet", "all requirements found, attempting install")
			in.OperatorGroups.Items[0].Spec.ServiceAccountName, in.OperatorGroups.Items[0].Status.ServiceAccountRef = "limited", c.ref
			other := selecting("")
			other.Namespace = "team"
			in.OperatorGroups.Items = append(in.OperatorGroups.Items, other) // more of them do no harm
			out := reconciled(t, in)
			lacking := in
			lacking.ServiceAccounts, lacking.Roles, lacking.RoleBindings = olmcore.Found[*corev1.ServiceAccount](), olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
			lacking.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
			hold(lacking.ClusterServiceVersion, pending, "RequirementsUnknown", "requirements not yet checked", time.Hour)
			repaired := reconciled(t, lacking)
			require.Equal(t, c.want != nil, len(repaired.Repair) == 3, "%v", repaired.Repair)
			for _, a := range repaired.Repair {
				require.Equal(t, c.want, a.(olmcore.Create).As)
			}
			if c.want == nil {
				for _, a := range out.Actions {
					verb, _, _ := a.Describe()
					require.Equal(t, olmcore.VerbUpdateStatus, verb, "%v", a)
				}
				return
			}
			require.Len(t, out.Actions, 1)
			require.Equal(t, c.want, out.Actions[0].(olmcore.Create).As)
		})
	}
}
