// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

var secrets = rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"secrets"}}

// addPermission adds a permission to the spec of the CSV.
func (w *world) addPermission(account string, rules ...rbacv1.PolicyRule) {
	all := &w.csv.Spec.InstallStrategy.StrategySpec.Permissions
	*all = append(*all, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: rules})
}

// forge creates the objects that an InstallPlan would create for the permissions of the spec, as a tenant can. They
// have the same names, labels and owner references.
func (w *world) forge() {
	planned, err := olmcore.PermissionObjects(w.csv)
	if err != nil {
		panic(err)
	}
	w.account, w.role, w.binding = nil, nil, nil
	for _, o := range planned {
		o.SetNamespace("ns")
		o.SetUID(types.UID("forged-" + olmcore.KeyOf(o).String()))
		o.SetResourceVersion("1")
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(w.csv)})
		if o.GetLabels() != nil {
			o.GetLabels()[olmcore.LabelManaged] = "true"
		}
		w.put(o)
	}
}

// forged returns the Role of the last permission of the spec.
func (w *world) forged() *rbacv1.Role {
	all := w.csv.Spec.InstallStrategy.StrategySpec.Permissions
	c := w.csv.DeepCopy()
	c.Spec.InstallStrategy.StrategySpec.Permissions = all[len(all)-1:]
	planned, err := olmcore.PermissionObjects(c)
	if err != nil {
		panic(err)
	}
	return planned[len(planned)-2].(*rbacv1.Role)
}

// replaceManifest replaces text in the manifest of a step of the plan.
func (w *world) replaceManifest(kind, before, after string) {
	s := w.step(kind)
	if !strings.Contains(s.Resource.Manifest, before) {
		panic(s.Resource.Manifest)
	}
	s.Resource.Manifest = strings.ReplaceAll(s.Resource.Manifest, before, after)
}

// attacks contains changes by which a tenant of the operator's namespace tries to get more permissions in other
// namespaces. Each is applied to a new world.
var attacks = map[string]func(w *world){
	"a permission added to the spec": func(w *world) { w.addPermission("cool", secrets) },
	"more rules for the same account": func(w *world) {
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
		w.addPermission("cool", pods, secrets)
	},
	"the rules of the plan for another account": func(w *world) {
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
		w.addPermission("mine", pods)
	},
	"all objects of a name instead of one": func(w *world) {
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
		one := secrets
		one.ResourceNames = []string{"one"}
		w.addPermission("cool", one)
		w.plan = csvtest.Plan(w.csv)
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
		w.addPermission("cool", secrets)
	},
	"another rule on URLs": func(w *world) {
		w.addPermission("cool", secrets, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}})
	},
	"a wildcard instead of the verbs": func(w *world) {
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
		every := pods
		every.Verbs = []string{"*"}
		w.addPermission("cool", every)
	},
	"the rules of the plan in another order": func(w *world) {
		permissions := &w.csv.Spec.InstallStrategy.StrategySpec.Permissions
		*permissions = nil
		w.addPermission("cool", pods, secrets)
		w.plan = csvtest.Plan(w.csv)
		*permissions = nil
		w.addPermission("cool", secrets, pods)
	},
	"the ServiceAccount of another CSV": func(w *world) {
		w.plan = nil
		w.more = append(w.more, liftedOf("other.v1", "uid-other.v1")...)
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
		w.addPermission("cool", pods, secrets)
	},
	"no plan": func(w *world) { w.plan = nil },
	"a plan without status": func(w *world) {
		w.addPermission("cool", secrets)
		w.plan = csvtest.Plan(w.csv)
		w.plan.Status = v1alpha1.InstallPlanStatus{}
	},
	"a plan of another namespace": func(w *world) { w.plan.Namespace = "evil" },
	"a plan of an account that the group does not name": func(w *world) {
		w.plan.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Namespace: w.csv.Namespace, Name: "limited"}
	},
	"a plan of another CSV": func(w *world) {
		for _, s := range w.plan.Status.Plan {
			s.Resolving = "other.v1"
		}
	},
	"a plan of an earlier CSV": func(w *world) {
		w.csv.Name = "cool.v0"
		w.plan = csvtest.Plan(w.csv)
		w.csv.Name = "cool.v1"
	},
	"a plan that waits for approval": func(w *world) {
		w.plan.Spec.Approval, w.plan.Spec.Approved = v1alpha1.ApprovalManual, false
		w.plan.Status.Phase = v1alpha1.InstallPlanPhaseRequiresApproval
		for _, s := range w.plan.Status.Plan {
			s.Status = v1alpha1.StepStatusUnknown
		}
	},
	"a plan that was superseded": func(w *world) {
		w.plan.Status.Phase = v1alpha1.InstallPlanPhaseFailed
		for _, s := range w.plan.Status.Plan {
			s.Status = v1alpha1.StepStatusNotPresent
		}
	},
	"a step that is not created": func(w *world) {
		w.step("Role").Status, w.plan.Status.Phase = v1alpha1.StepStatusNotCreated, v1alpha1.InstallPlanPhaseInstalling
	},
	"a step with fewer rules": func(w *world) { w.replaceManifest("Role", `"get","list"`, `"get"`) },
	"a step without rules":    func(w *world) { w.replaceManifest("Role", `"rules":`, `"others":`) },
	"a step of another kind":  func(w *world) { w.step("Role").Resource.Kind = "ClusterRole" },
	"a step of another group": func(w *world) { w.step("Role").Resource.Group = "rbac.example.com" },
	"a manifest of another group": func(w *world) {
		w.replaceManifest("Role", `{"metadata"`, `{"apiVersion":"rbac.example.com/v1","metadata"`)
	},
	"a manifest of another kind":    func(w *world) { w.replaceManifest("Role", `{"metadata"`, `{"kind":"ClusterRole","metadata"`) },
	"a manifest that is not JSON":   func(w *world) { w.step("Role").Resource.Manifest = `{"rules": [` },
	"an empty manifest":             func(w *world) { w.step("Role").Resource.Manifest = "" },
	"a manifest with invalid rules": func(w *world) { w.step("Role").Resource.Manifest = `{"rules": {"verbs": "*"}}` },
	"a huge manifest":               func(w *world) { w.step("Role").Resource.Manifest += strings.Repeat(" ", 1<<20) },
	"a deeply nested manifest":      func(w *world) { w.step("Role").Resource.Manifest = strings.Repeat("[", 1<<19) },
	"a binding of another account": func(w *world) {
		w.replaceManifest("RoleBinding", `"name":"cool","namespace"`, `"name":"mine","namespace"`)
	},
	"a binding of an account elsewhere":   func(w *world) { w.replaceManifest("RoleBinding", `"namespace":"ns"}]`, `"namespace":"evil"}]`) },
	"a binding of another role":           func(w *world) { w.replaceManifest("RoleBinding", `"kind":"Role"`, `"kind":"ClusterRole"`) },
	"a plan with a nil step and no other": func(w *world) { w.plan.Status.Plan = []*v1alpha1.Step{nil} },
	"a Role that looks copied": func(w *world) {
		w.addPermission("cool", secrets)
		role := w.forged()
		role.UID, role.ResourceVersion = "copied", "1"
		role.Labels["olm.copiedFrom"], role.Labels["olm.managed"] = "ns", "true"
		role.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(copyIn("a"))}
		w.put(role)
	},
	"labels that aggregate it": func(w *world) {
		w.addPermission("cool", secrets)
		role := w.forged()
		role.UID, role.ResourceVersion = "labelled", "1"
		role.Labels["rbac.authorization.k8s.io/aggregate-to-admin"], role.Labels["olm.managed"] = "true", "true"
		w.put(role)
	},
	"an approval on the CSV, its group and another Namespace": func(w *world) {
		w.plan = nil
		approval := map[string]string{permissions.AnnotationAllowed: approvalOf(w)}
		w.csv.Annotations, w.group.Annotations = maps.Clone(approval), maps.Clone(approval)
		w.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "evil", UID: "evil", ResourceVersion: "1", Annotations: approval}})
	},
	"an approval of other rules": func(w *world) {
		approval := map[string]string{permissions.AnnotationAllowed: approvalOf(w)}
		w.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", ResourceVersion: "1", Annotations: approval}})
		w.addPermission("cool", secrets)
	},
	"the rules of the version that it claims to replace, and more": func(w *world) { w.claim("cool", pods, secrets) },
	"the rules of the version that it claims to replace, for another account": func(w *world) {
		w.claim("mine", pods)
	},
}

// claim makes the CSV replace cool.v0, which has the permission of a new world in the whole cluster. The CSV also gets
// another permission.
func (w *world) claim(account string, rules ...rbacv1.PolicyRule) {
	w.plan = nil
	w.csv.Spec.Replaces = "cool.v0"
	w.more = append(w.more, liftedOf("cool.v0", "uid-cool.v0")...)
	w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
	w.addPermission(account, rules...)
}

// liftedOf returns the ClusterRole and ClusterRoleBinding of the permission of a new world for a version with a name.
// They have a UID if the library wrote them, and none if OLM wrote them.
func liftedOf(name, uid string) []olmcore.Object {
	before := withoutAPIs("")
	before.csv.Name, before.csv.UID = name, types.UID(uid)
	before.install()
	before.liftAsOLM("")
	for _, o := range before.more {
		o.SetUID(types.UID("of-" + name + olmcore.KeyOf(o).Kind))
		if labels := o.GetLabels(); uid != "" {
			labels["olm.copiedFrom"], labels["olm.owner.uid"] = "ns", uid
		}
	}
	return before.more
}

// approvalOf returns the digest that the Diagnostic of a world without an InstallPlan names.
func approvalOf(w *world) string {
	w = &world{csv: w.csv, group: w.group, account: w.account, role: w.role, binding: w.binding, more: w.more}
	for _, d := range reconciled(panics{}, w.input(panics{})).Diagnostics {
		if _, value, found := strings.Cut(d.Message, permissions.AnnotationAllowed+"="); found {
			return strings.Fields(value)[0]
		}
	}
	panic("no Diagnostic says how to allow it")
}

// panics is a require.TestingT that panics on failure.
type panics struct{}

func (panics) Errorf(format string, args ...any) { panic(format) }
func (panics) FailNow()                          { panic("failed") }

// TestForgedRolesAreNotLifted checks that nothing is granted outside the namespace of the operator for a Role that a
// tenant wrote. A Diagnostic reports the Role, and the operator is at rest.
func TestForgedRolesAreNotLifted(t *testing.T) {
	for title, attack := range attacks {
		for _, targets := range [][]string{{""}, {"a", "b"}} {
			t.Run(title+"/"+strings.Join(targets, ","), func(t *testing.T) {
				w := withoutAPIs(targets...)
				w.more = []olmcore.Object{copyIn("a"), copyIn("b")}
				attack(w)
				name := w.forged().Name
				w.forge()
				for range 3 {
					res := reconciled(t, w.input(t)).Result
					for _, line := range lines(res) {
						require.False(t, strings.HasSuffix(line, name), line)
					}
					w.apply(res.Actions)
				}
				out := reconciled(t, w.input(t))
				require.Empty(t, out.Actions)
				require.Zero(t, out.RequeueAfter)
				requireNotApproved(t, out.Diagnostics, name)
				reported, err := permissions.Assess(w.input(t))
				require.NoError(t, err)
				requireNotApproved(t, reported, name)
			})
		}
	}
}

func requireNotApproved(t *testing.T, reported []olmcore.Diagnostic, name string) {
	t.Helper()
	i := slices.IndexFunc(reported, func(d olmcore.Diagnostic) bool {
		return d.Reason == permissions.ReasonPermissionNotApproved && d.Target.Name == name
	})
	require.GreaterOrEqual(t, i, 0, reported)
	require.Equal(t, olmcore.Warning, reported[i].Severity)
	require.Contains(t, reported[i].Message, "kubectl annotate namespace ns "+permissions.AnnotationAllowed+"=")
	require.Less(t, len(reported[i].Message), 2000)
}

// TestForgedCopiesGetNoRules checks that a Role in a target namespace with the labels and the owner of a copied Role
// does not get the rules of a spec that nothing proves.
func TestForgedCopiesGetNoRules(t *testing.T) {
	for _, phase := range []v1alpha1.ClusterServiceVersionPhase{succeeded, v1alpha1.CSVPhasePending} {
		for _, bound := range []bool{false, true} {
			w := withoutAPIs("a")
			w.more = []olmcore.Object{copyIn("a")}
			w.converge(t)
			w.addPermission("cool", secrets)
			w.forge()
			template := find[*rbacv1.Role](w, "a", newWorld().role.Name)
			role := w.forged()
			role.Namespace, role.UID, role.ResourceVersion, role.Rules = "a", "forged", "1", nil
			role.Labels, role.OwnerReferences = maps.Clone(template.Labels), template.OwnerReferences
			w.put(role)
			if bound {
				binding := find[*rbacv1.RoleBinding](w, "a", newWorld().role.Name).DeepCopy()
				binding.Name, binding.RoleRef.Name, binding.UID = role.Name, role.Name, "forged"
				w.put(binding)
			}
			hold(w.csv, phase, "", "", time.Hour)
			res := reconciled(t, w.input(t)).Result
			require.Empty(t, res.Actions)
			requireNotApproved(t, res.Diagnostics, role.Name)
		}
	}
}
