// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/internal/operators"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// stepAttack: a tenant writes what he may in his namespace, to reach what he may not.
func stepAttack(h *History, r Choices) {
	h.Figures.Attacks++
	pick(r, []func(*History, Choices){
		attackWithCleanup, attackWithWiderReach, attackByDeletion, attackWithGroup,
		attackWithPlan, attackWithCatalog, attackWithOwners, attackWithVersion,
		attackWithCondition, attackWithCopy, attackWithRole, attackWithCertificate,
	})(h, r)
}

// attackWithCleanup: a version whose clean-up would reach everything.
func attackWithCleanup(h *History, r Choices) {
	c := operators.Bundle("helm", 1)[0].DeepCopyObject().(*v1alpha1.ClusterServiceVersion)
	c.Namespace, c.Name = attacker, fmt.Sprint("cleaner-", r.IntN(3))
	c.Spec.Cleanup.Enabled = true
	c.Finalizers = []string{"operators.coreos.com/csv-cleanup"}
	c.Annotations = widest(r)
	c.Labels = map[string]string{"olm.owner": "alpha.v1.0.0", "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion"}
	if r.IntN(3) == 0 {
		c.Labels = map[string]string{"olm.copiedFrom": namespace}
	}
	_ = h.Cluster.Create(c)
}

func widest(r Choices) map[string]string {
	return map[string]string{
		"olm.targetNamespaces": pick(r, []string{"", victim, namespace + "," + victim}), "olm.operatorGroup": pick(r, []string{"group", "mine"}),
		"olm.operatorNamespace": pick(r, []string{attacker, namespace}),
	}
}

func hisVersions(h *History) (all []*v1alpha1.ClusterServiceVersion) {
	for _, o := range h.Cluster.Objects() {
		if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok && c.Namespace == attacker {
			all = append(all, c)
		}
	}
	return all
}

// attackWithWiderReach edits a version of his, also one that is being deleted.
func attackWithWiderReach(h *History, r Choices) {
	if all := hisVersions(h); len(all) > 0 {
		c := pick(r, all)
		_ = fake.Edit(h.Cluster, attacker, c.Name, func(c *v1alpha1.ClusterServiceVersion) {
			c.Annotations = widest(r)
			c.Status.Phase = pick(
				r,
				[]v1alpha1.ClusterServiceVersionPhase{
					c.Status.Phase,
					v1alpha1.CSVPhaseSucceeded,
					v1alpha1.CSVPhaseReplacing,
					v1alpha1.CSVPhaseDeleting,
				},
			)
			c.Spec.Replaces = pick(r, []string{"", "alpha.v1.0.0", c.Name})
		})
	}
}

func attackByDeletion(h *History, r Choices) {
	if all := hisVersions(h); len(all) > 0 {
		_ = h.Cluster.Delete(olmcore.RefOf(pick(r, all)).Unversioned())
	}
}

// attackWithGroup: a second OperatorGroup, or none but that.
func attackWithGroup(h *History, r Choices) {
	g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: "mine"}}
	g.Spec.TargetNamespaces = pick(r, [][]string{{attacker}, nil, {victim}, {attacker, victim}})
	if h.Cluster.Create(g) != nil {
		_ = h.Cluster.Delete(olmcore.RefOf(g).Unversioned())
		return
	}
	_ = fake.Edit(h.Cluster, attacker, "mine", func(g *operatorsv1.OperatorGroup) {
		g.Status.Namespaces = []string{""}
		g.Status.ServiceAccountRef = nil
	})
}

// attackWithCondition: an OperatorCondition by hand, with accounts of others, or what his operator may say in one.
func attackWithCondition(h *History, r Choices) {
	o := &operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       attacker,
			Name:            pick(r, []string{"settings", "alpha.v1.0.0", "delta.v1.0.0", "epsilon.v1.0.0", "cleaner-1"}),
			OwnerReferences: victimsAsOwners(h, r),
		},
	}
	o.Spec.ServiceAccounts = []string{"default", "robot", "system:serviceaccount:" + victim + ":robot"}
	o.Spec.Deployments = []string{"alpha", "robot"}
	if h.Cluster.Create(o) == nil {
		return
	}
	_ = fake.Edit(h.Cluster, attacker, o.Name, func(o *operatorsv2.OperatorCondition) {
		said := metav1.Condition{
			Type:               "Upgradeable",
			Status:             pick(r, []metav1.ConditionStatus{"True", "False"}),
			Reason:             "Said",
			LastTransitionTime: metav1.NewTime(h.Cluster.Now()),
		}
		o.Spec.Conditions, o.Spec.Overrides = []metav1.Condition{said, said}, pick(r, [][]metav1.Condition{nil, {said}})
		o.Status.Conditions = pick(r, [][]metav1.Condition{nil, {said}})
	})
}

var evilManifests = []string{
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: precious}, rules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"]}]}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: precious}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}`,
	`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: victim}, data: {a: stolen}}`,
	`{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: victim}}`,
	`{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: victim}}`,
	`{apiVersion: v1, kind: Service, metadata: {name: door, namespace: victim}, spec: {ports: [{port: 81}]}}`,
}

// attackWithPlan: an approved plan of his own, with its status.
func attackWithPlan(h *History, r Choices) {
	p := &v1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: fmt.Sprint("plan-", r.IntN(3)), OwnerReferences: victimsAsOwners(h, r),
			Labels: map[string]string{olmcore.ComponentLabelPrefix + "alpha." + namespace: ""}},
		Spec: v1alpha1.InstallPlanSpec{
			Approval:                   v1alpha1.ApprovalAutomatic,
			Approved:                   true,
			ClusterServiceVersionNames: []string{"alpha.v1.0.0"},
		},
	}
	if h.Cluster.Create(p) != nil {
		_ = h.Cluster.Delete(olmcore.RefOf(p).Unversioned())
		return
	}
	manifest := pick(r, evilManifests)
	data, err := yaml.YAMLToJSON([]byte(manifest))
	h.must(err)
	o, err := decode.Decode(data)
	h.must(err)
	gvk := olmcore.GVKOf(o)
	_ = fake.Edit(h.Cluster, attacker, p.Name, func(p *v1alpha1.InstallPlan) {
		p.Status = v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{}, Plan: []*v1alpha1.Step{{
			Resolving: "alpha.v1.0.0", Status: pick(r, []v1alpha1.StepStatus{v1alpha1.StepStatusUnknown, v1alpha1.StepStatusNotPresent}),
			Resource: v1alpha1.StepResource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: o.GetName(), Manifest: string(data)},
		}}}
	})
}

// attackWithCatalog: a CatalogSource and a Subscription in his namespace.
func attackWithCatalog(h *History, r Choices) {
	_ = h.Cluster.Create(&v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: "community"},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/evil:latest", Priority: 1000},
	})
	name := pick(r, packages)
	_ = h.Cluster.Create(&v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: name},
		Spec: &v1alpha1.SubscriptionSpec{Package: name, Channel: "stable", CatalogSource: "community",
			CatalogSourceNamespace: pick(r, []string{"olm", attacker})},
	})
}

// attackWithOwners: objects of his that claim to belong to others.
func attackWithOwners(h *History, r Choices) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: attacker, Name: fmt.Sprint("claim-", r.IntN(3)), OwnerReferences: victimsAsOwners(h, r),
		Labels: map[string]string{
			"olm.managed": "true", "olm.owner": pick(r, []string{"alpha.v1.0.0", "precious"}), "olm.owner.namespace": pick(r, []string{namespace, victim}),
			"olm.owner.kind": "ClusterServiceVersion", "olm.catalogSource": "community", olmcore.ComponentLabelPrefix + "alpha." + namespace: "",
			"operatorframework.io/bundle-unpack-ref": "x",
		},
	}}
	if h.Cluster.Create(cm) != nil {
		_ = h.Cluster.Delete(olmcore.RefOf(cm).Unversioned())
	}
}

// victimsAsOwners refers to an object of another tenant.
func victimsAsOwners(h *History, r Choices) []metav1.OwnerReference {
	var all []olmcore.Object
	for _, o := range h.Cluster.Objects() {
		if o.GetNamespace() != attacker &&
			strings.Contains("Subscription ClusterServiceVersion CatalogSource ClusterRole CustomResourceDefinition", olmcore.GVKOf(o).Kind) {
			all = append(all, o)
		}
	}
	o := pick(r, all)
	gvk := olmcore.GVKOf(o)
	return []metav1.OwnerReference{
		{
			APIVersion:         gvk.GroupVersion().String(),
			Kind:               gvk.Kind,
			Name:               o.GetName(),
			UID:                o.GetUID(),
			Controller:         new(true),
			BlockOwnerDeletion: new(true),
		},
	}
}

// attackWithVersion: a version that claims what another tenant's operator has.
func attackWithVersion(h *History, r Choices) {
	c := operators.Bundle(pick(r, packages), 1+r.IntN(3))[0].DeepCopyObject().(*v1alpha1.ClusterServiceVersion)
	c.Namespace = attacker
	for _, mode := range []v1alpha1.InstallModeType{v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeAllNamespaces, v1alpha1.InstallModeTypeMultiNamespace} {
		c.Spec.InstallModes = append(c.Spec.InstallModes, v1alpha1.InstallMode{Type: mode, Supported: true})
	}
	strategy := &c.Spec.InstallStrategy.StrategySpec
	strategy.Permissions = append(strategy.Permissions, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "weak", Rules: everything})
	strategy.ClusterPermissions = append(
		strategy.ClusterPermissions,
		v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "weak", Rules: everything},
	)
	c.Spec.Replaces = pick(r, []string{"", "alpha.v1.0.0"})
	c.Spec.Cleanup.Enabled = r.IntN(2) == 0
	c.Annotations = widest(r)
	c.OwnerReferences = victimsAsOwners(h, r)
	_ = h.Cluster.Create(c)
}

var everything = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}

// attackWithCopy: what looks like a copy of another tenant's version, or is one that he changed.
func attackWithCopy(h *History, r Choices) {
	name, home := pick(r, []string{"delta", "epsilon", "zeta"}), pick(r, []string{everywhere, platform, namespace})
	c := operators.Bundle(name, 1+r.IntN(3))[0].DeepCopyObject().(*v1alpha1.ClusterServiceVersion)
	c.Namespace = attacker
	c.Labels = pick(r, []map[string]string{nil, {"olm.copiedFrom": home}})
	c.Annotations = map[string]string{
		"olm.operatorNamespace": home,
		"olm.operatorGroup":     "group",
		"olm.targetNamespaces":  pick(r, []string{"", attacker, victim}),
	}
	c.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "weak", Rules: everything}}
	if h.Cluster.Create(c) != nil {
		_ = fake.Edit(h.Cluster, attacker, c.Name, func(have *v1alpha1.ClusterServiceVersion) {
			have.Labels, have.Annotations, have.Spec = c.Labels, c.Annotations, c.Spec
			have.Status.Phase, have.Status.Reason = v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVReasonCopied
		})
	}
}

// attackWithRole: a Role and a RoleBinding as the library makes them for an operator where it watches, and an account
// of the operator's name.
func attackWithRole(h *History, r Choices) {
	name, home := pick(r, []string{"delta", "zeta"}), pick(r, []string{everywhere, platform})
	marks := map[string]string{
		"olm.managed":         "true",
		"olm.copiedFrom":      home,
		"olm.owner":           name + ".v1.0.0",
		"olm.owner.namespace": pick(r, []string{home, attacker}),
		"olm.owner.kind":      "ClusterServiceVersion",
		"rbac.authorization.k8s.io/aggregate-to-admin": "true",
	}
	object := metav1.ObjectMeta{
		Namespace:       attacker,
		Name:            pick(r, []string{name, name + "-manager-service-cert", name + ".v1.0.0"}),
		Labels:          marks,
		OwnerReferences: victimsAsOwners(h, r),
	}
	role := &rbacv1.Role{ObjectMeta: object, Rules: everything}
	if h.Cluster.Create(role) != nil {
		_ = h.Cluster.Delete(olmcore.RefOf(role).Unversioned())
	}
	_ = h.Cluster.Create(
		&rbacv1.RoleBinding{ObjectMeta: object, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: role.Name},
			Subjects: []rbacv1.Subject{
				{Kind: "ServiceAccount", Namespace: home, Name: name},
				{Kind: "ServiceAccount", Namespace: attacker, Name: "weak"},
			}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: name, Labels: marks}},
	)
}

// attackWithCertificate: a Secret and a Service with the names of an operator's.
func attackWithCertificate(h *History, r Choices) {
	name := pick(r, []string{"delta-manager", "epsilon", "zeta"})
	marks := map[string]string{
		"olm.managed":         "true",
		"olm.owner":           strings.TrimSuffix(name, "-manager") + ".v1.0.0",
		"olm.owner.namespace": everywhere,
		"olm.owner.kind":      "ClusterServiceVersion",
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: name + "-service-cert", Labels: marks, OwnerReferences: victimsAsOwners(h, r)},
	}
	if his := fake.Find[*corev1.Secret](h.Cluster, everywhere, secret.Name); his != nil && r.IntN(2) == 0 {
		secret.Data = map[string][]byte{"olmCAKey": his.Data["tls.crt"], "tls.crt": his.Data["olmCAKey"]}
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: name + "-service", Labels: marks},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}
	if h.Cluster.Create(secret, service) != nil {
		_ = h.Cluster.Delete(olmcore.RefOf(pick(r, []olmcore.Object{secret, service})).Unversioned())
	}
}
