// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// installed is the Deployment of input's CSV, available.
var installed = sync.OnceValue(func() *appsv1.Deployment {
	out, err := csv.Reconcile(input(installReady, "AllRequirementsMet", ""))
	if err != nil {
		panic(err)
	}
	d := out.Actions[0].(olmcore.Create).Object.(*appsv1.Deployment)
	d.UID, d.ResourceVersion, d.Generation, d.CreationTimestamp = "deployment-cool", "20", 1, *ago(time.Hour)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
	}}
	return d
})

// oddity is something that can be wrong, or merely different, about the world of input's CSV.
type oddity func(t *rapid.T, in *csv.Input)

func deployment(change func(d *appsv1.Deployment)) oddity {
	return func(_ *rapid.T, in *csv.Input) {
		for _, d := range in.Deployments.Items {
			change(d)
		}
	}
}

func group1(change func(g *operatorsv1.OperatorGroup)) oddity {
	return func(_ *rapid.T, in *csv.Input) {
		for _, g := range in.OperatorGroups.Items {
			change(g)
		}
	}
}

func strategy(change func(s *v1alpha1.StrategyDetailsDeployment)) oddity {
	return func(_ *rapid.T, in *csv.Input) { change(&in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec) }
}

func spec(change func(s *v1alpha1.ClusterServiceVersionSpec)) oddity {
	return func(_ *rapid.T, in *csv.Input) { change(&in.ClusterServiceVersion.Spec) }
}

func crd1(change func(c *apiextensionsv1.CustomResourceDefinition)) oddity {
	return func(_ *rapid.T, in *csv.Input) {
		for _, c := range in.CustomResourceDefinitions.Items {
			change(c)
		}
	}
}

func config(change func(c *csv.Config)) oddity {
	return func(_ *rapid.T, in *csv.Input) { change(&in.Config) }
}

func phaseOf(t *rapid.T, what string) phaseName {
	return rapid.SampledFrom(csvtest.Phases).Draw(t, what)
}

// oddities are drawn a few at a time. Later ones build on earlier ones.
var oddities = map[string]oddity{
	"the Deployment is not available": deployment(func(d *appsv1.Deployment) { d.Status.Conditions = nil }),
	"the Deployment gave up": deployment(func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Progressing", Reason: "ProgressDeadlineExceeded"}}
	}),
	"the Deployment has a new generation": deployment(func(d *appsv1.Deployment) { d.Generation = 2 }),
	"old replicas":                        deployment(func(d *appsv1.Deployment) { d.Status.Replicas = 3 }),
	"no hash label":                       deployment(func(d *appsv1.Deployment) { delete(d.Labels, "olm.deployment-spec-hash") }),
	"another hash label": deployment(func(d *appsv1.Deployment) {
		d.Labels, _ = olmcore.MergeLabels(d.Labels, map[string]string{"olm.deployment-spec-hash": "old"})
	}),
	"no note":                    deployment(func(d *appsv1.Deployment) { d.Annotations = nil }),
	"no template annotations":    deployment(func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }),
	"the Deployment is nobody's": deployment(func(d *appsv1.Deployment) { d.Labels, d.OwnerReferences = nil, nil }),
	"the Deployment is the predecessor's": deployment(func(d *appsv1.Deployment) {
		d.Labels, d.OwnerReferences = ours("cool").Labels, ownerCSV("cool.v0")
		d.Labels["olm.owner"] = "cool.v0"
	}),
	"the Deployment has two owners": deployment(func(d *appsv1.Deployment) {
		d.OwnerReferences = append(ownerCSV("cool.v0"), ownerCSV("cool.v1")...)
	}),
	"the Deployment is leaving": deployment(func(d *appsv1.Deployment) { d.DeletionTimestamp = ago(time.Second) }),
	"a Deployment too many": func(_ *rapid.T, in *csv.Input) {
		d := installed().DeepCopy()
		d.Name, d.UID = "old", "old"
		in.Deployments.Items = append(in.Deployments.Items, d)
	},
	"the CRD is gone":            func(_ *rapid.T, in *csv.Input) { in.CustomResourceDefinitions.Items = nil },
	"the CRD version is gone":    crd1(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Served = false }),
	"the CRD is not established": crd1(func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions = nil }),
	"the CRD is leaving":         crd1(func(c *apiextensionsv1.CustomResourceDefinition) { c.DeletionTimestamp = ago(0) }),
	"the CRD came before": crd1(func(c *apiextensionsv1.CustomResourceDefinition) {
		c.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": "ns/cool.v0"}
	}),
	"the CRD converts with us": func(t *rapid.T, in *csv.Input) {
		in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{GenerateName: "w", DeploymentName: "cool", Type: v1alpha1.ConversionWebhook}}
		crd1(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Conversion = ourConversion() })(t, in)
	},
	"the account is gone": func(_ *rapid.T, in *csv.Input) { in.ServiceAccounts.Items = nil },
	"the account is another's": func(_ *rapid.T, in *csv.Input) {
		for _, a := range in.ServiceAccounts.Items {
			a.OwnerReferences = ownerCSV("cool.v2")
		}
	},
	"the role is gone":    func(_ *rapid.T, in *csv.Input) { in.Roles.Items = nil },
	"the binding is gone": func(_ *rapid.T, in *csv.Input) { in.RoleBindings.Items = nil },
	"no group":            func(_ *rapid.T, in *csv.Input) { in.OperatorGroups.Items = nil },
	"two groups": func(_ *rapid.T, in *csv.Input) {
		second := group()
		second.Name, second.UID = "second", "second"
		in.OperatorGroups.Items = append(in.OperatorGroups.Items, second)
	},
	"the group watches more":    group1(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = []string{"ns", "a"} }),
	"the group watches nothing": group1(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = nil }),
	"the group watches all":     group1(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = []string{""} }),
	"the group is new":          group1(func(g *operatorsv1.OperatorGroup) { g.Status = operatorsv1.OperatorGroupStatus{} }),
	"the group is static":       group1(func(g *operatorsv1.OperatorGroup) { g.Spec.StaticProvidedAPIs = true }),
	"the group lists nothing":   group1(func(g *operatorsv1.OperatorGroup) { g.Annotations = nil }),
	"the group fails forward": group1(func(g *operatorsv1.OperatorGroup) {
		g.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
	}),
	"the group's account is missing": group1(func(g *operatorsv1.OperatorGroup) { g.Spec.ServiceAccountName = "limited" }),
	"the group has an account": group1(func(g *operatorsv1.OperatorGroup) {
		g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = "limited", &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "limited"}
	}),
	"another group lists the API": func(t *rapid.T, in *csv.Input) {
		in.OtherGroups = olmcore.Found(otherGroup(coolAPI, rapid.SampledFrom([]string{"ns", "", "elsewhere"}).Draw(t, "watched")))
		in.OtherProviders = olmcore.Found(competitor(phaseOf(t, "rival"), time.Duration(rapid.SampledFrom([]int{1, 1000}).Draw(t, "age"))*time.Hour))
	},
	"a successor": func(t *rapid.T, in *csv.Input) {
		s := successorOf(in, phaseOf(t, "successor"))
		if rapid.Bool().Draw(t, "deleted") {
			s.DeletionTimestamp = ago(0)
		}
		if rapid.Bool().Draw(t, "followed") {
			last := operator("cool.v3", 3)
			last.Spec.Replaces = "cool.v2"
			hold(last, phaseOf(t, "last"), "InstallSucceeded", "", time.Minute)
			in.Neighbours.Items = append(in.Neighbours.Items, last)
		}
	},
	"a predecessor": func(t *rapid.T, in *csv.Input) { predecessorOf(in, phaseOf(t, "predecessor")) },
	"a cycle":       spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.Replaces = "cool.v2" }),
	"itself":        spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.Replaces = "cool.v1" }),
	"a stranger with the same CRD": func(_ *rapid.T, in *csv.Input) {
		in.Neighbours.Items = append(in.Neighbours.Items, operator("rival.v1", 1))
	},
	"the predecessor is not upgradeable": func(_ *rapid.T, in *csv.Input) {
		said := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v0"}}
		in.OperatorConditions = olmcore.Found(said)
		said.Status.Conditions = []metav1.Condition{{Type: "Upgradeable", Status: "False", Message: "migrating"}}
	},
	"another strategy":    spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallStrategy.StrategyName = "helm" }),
	"no Deployments":      strategy(func(s *v1alpha1.StrategyDetailsDeployment) { s.DeploymentSpecs = nil }),
	"a rule without verb": strategy(func(s *v1alpha1.StrategyDetailsDeployment) { s.Permissions[0].Rules[0].Verbs = nil }),
	"cluster permissions": strategy(func(s *v1alpha1.StrategyDetailsDeployment) { s.ClusterPermissions = slices.Clone(s.Permissions) }),
	"webhooks": spec(func(s *v1alpha1.ClusterServiceVersionSpec) {
		s.WebhookDefinitions = []v1alpha1.WebhookDescription{{GenerateName: "w", DeploymentName: "cool", Type: v1alpha1.MutatingAdmissionWebhook}}
	}),
	"a bad webhook":          spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.WebhookDefinitions = []v1alpha1.WebhookDescription{{}} }),
	"a new cluster is asked": spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.MinKubeVersion = "99.0.0" }),
	"no install modes":       spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallModes = nil }),
	"a bad CRD name":         spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.CustomResourceDefinitions.Owned[0].Name = "cools" }),
	"a new generation":       func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Generation = 7 },
	"an annotation":          func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Annotations["new"] = "x" },
	"no labels":              func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Labels = nil },
	"no finalizer":           func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Finalizers = nil },
	"no finalizer of ours":   func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Finalizers = []string{"other"} },
	"the last write failed": func(t *rapid.T, in *csv.Input) {
		class := rapid.SampledFrom([]olmcore.ErrorClass{olmcore.Forbidden, olmcore.Invalid, olmcore.Transient, olmcore.Conflict, olmcore.Webhook, olmcore.Gone}).Draw(t, "class")
		in.LastRun = olmcore.LastResults{{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "cool"}: {
			Class: class, Message: "no", Count: rapid.IntRange(1, 9).Draw(t, "count"), First: now.Add(-time.Hour), Last: now,
		}}
	},
	"RBAC changed": func(_ *rapid.T, in *csv.Input) { in.Judged = &csv.Judged{Account: "another"} },
	"unread": func(t *rapid.T, in *csv.Input) {
		lists := unreadable(in)
		lists[rapid.SampledFrom(slices.Sorted(maps.Keys(lists))).Draw(t, "list")]()
	},
	"AdoptForeignDeployments": config(func(c *csv.Config) { c.AdoptForeignDeployments = true }),
}

// unread makes a list one that was not read.
func unread[T any](list *olmcore.Observed[T]) { *list = olmcore.Observed[T]{} }

// unreadable makes one of the lists that a read can fail for unread.
func unreadable(in *csv.Input) map[string]func() {
	return map[string]func(){
		"OperatorGroups":                             func() { unread(&in.OperatorGroups) },
		"OperatorGroups of all namespaces":           func() { unread(&in.OtherGroups) },
		"ClusterServiceVersions":                     func() { unread(&in.Neighbours) },
		"ClusterServiceVersions of other namespaces": func() { unread(&in.OtherProviders) },
		"CustomResourceDefinitions":                  func() { unread(&in.CustomResourceDefinitions) },
		"ServiceAccounts":                            func() { unread(&in.ServiceAccounts) },
		"Roles":                                      func() { unread(&in.Roles) },
		"RoleBindings":                               func() { unread(&in.RoleBindings) },
		"ClusterRoles":                               func() { unread(&in.ClusterRoles) },
		"ClusterRoleBindings":                        func() { unread(&in.ClusterRoleBindings) },
		"Deployments":                                func() { unread(&in.Deployments) },
	}
}

// likely draws the world of an operator in which everything is as it should be but for a few oddities, in any phase,
// with any past.
func likely(t *rapid.T) csv.Input {
	why := rapid.SampledFrom([]reason{
		"RequirementsUnknown", "RequirementsNotMet", "AllRequirementsMet", "InstallSucceeded", "InstallWaiting", "ComponentUnhealthy",
		"InstallComponentFailed", "InstallComponentFailedNoRetry", "NoOperatorGroup", "InterOperatorGroupOwnerConflict",
		"CannotModifyStaticOperatorGroupProvidedAPIs", "OwnerConflict", "InvalidInstallStrategy", "BeingReplaced", "Replaced", "NeedsReinstall",
	}).Draw(t, "reason")
	in := input(phaseOf(t, "phase"), why, "words")
	in.Now = now
	c := in.ClusterServiceVersion
	age := time.Duration(rapid.SampledFrom([]int{0, 1, 5, 10, 29, 30, 31, 299, 300, 301, 3600}).Draw(t, "age")) * time.Second
	if c.Status.Phase != none {
		c.Status.LastTransitionTime, c.Status.LastUpdateTime = ago(age), ago(age)
		c.Status.Conditions = past(t, c.Status.Conditions[0], age)
	}
	if rapid.IntRange(0, 3).Draw(t, "deployed") > 0 {
		in.Deployments.Items = []*appsv1.Deployment{installed().DeepCopy()}
	}
	names := slices.Sorted(maps.Keys(oddities))
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(names)-1), 0, 4).Draw(t, "oddities") {
		oddities[names[i]](t, &in)
	}
	return distinct(in)
}

// past is a history that ends in an entry.
func past(t *rapid.T, last v1alpha1.ClusterServiceVersionCondition, age time.Duration) []v1alpha1.ClusterServiceVersionCondition {
	n := rapid.SampledFrom([]int{0, 1, 3, 19}).Draw(t, "past")
	var list []v1alpha1.ClusterServiceVersionCondition
	for i := range n {
		at := ago(age + time.Duration(n-i)*time.Minute)
		list = append(list, v1alpha1.ClusterServiceVersionCondition{
			Phase:  []phaseName{succeeded, pending, failed}[i%3],
			Reason: []reason{"InstallSucceeded", "NeedsReinstall", "InstallComponentFailed"}[i%3], Message: fmt.Sprint("entry ", i),
			LastUpdateTime: at, LastTransitionTime: at,
		})
	}
	last.LastUpdateTime, last.LastTransitionTime = ago(age), ago(age)
	return append(list, last)
}
