// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// annotationLimit is the annotation of a record that names the ServiceAccount of the OperatorGroup. The record is
// written before the account grants the permission, and the API server may reject that. So the record proves the
// permission only while the group names the account. Without the annotation it proves the permission for every group.
const annotationLimit = olmcore.KeyPrefix + "limited-to-account"

// recordOf returns the ClusterRole that records a permission. It has no rules, so it grants nothing. Its name is the
// name of the ClusterRole that the permission has if the group targets all namespaces: a hash of the ServiceAccount and
// the rules. It proves the permission later, even if the InstallPlan and all objects in the target namespaces are
// deleted. It is deleted together with the ClusterServiceVersion.
func recordOf(c *v1alpha1.ClusterServiceVersion, g grant) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: g.role.APIVersion, Kind: "ClusterRole"},
		ObjectMeta: placeOf(c, nil).meta(&g.role.ObjectMeta),
	}
}

// records contains the ClusterRoles and ClusterRoleBindings that prove which permissions of a ClusterServiceVersion,
// and of the version that it replaces, were granted before. Tenants cannot write them. Their names are hashes of the
// ServiceAccount and the rules.
type records struct {
	version, replaced *v1alpha1.ClusterServiceVersion // replaced is nil for none
	// names are the names of the objects that the library wrote for the version, and for the one that it replaces. They
	// omit ClusterRoles that are limited to another account.
	names, namesOfReplaced sets.Set[string]
	// limited contains the names of the ClusterRoles of the version that are limited to another account.
	limited sets.Set[string]
	// lifted contains the ClusterRoles with rules, also those that OLM wrote.
	lifted []*rbacv1.ClusterRole
	// rules caches the rules of the lifted ClusterRoles by ServiceAccount.
	rules map[string][]rbacv1.PolicyRule
}

// recordsOf returns the records among the observed ClusterRoles and ClusterRoleBindings.
func recordsOf(f *facts) *records {
	kept := &records{
		version: f.csv, replaced: replacedBy(f.csv),
		names: sets.New[string](), limited: sets.New[string](), namesOfReplaced: sets.New[string](),
		rules: map[string][]rbacv1.PolicyRule{},
	}
	for _, b := range f.in.ClusterRoleBindings.Items {
		kept.add(b, false)
	}
	for _, r := range f.in.ClusterRoles.Items {
		limit := r.Annotations[annotationLimit]
		if kept.add(r, limit != "" && limit != f.accountName()) && r.AggregationRule == nil && len(r.Rules) > 0 {
			kept.lifted = append(kept.lifted, r)
		}
	}
	return kept
}

// add adds an object if it belongs to one of the versions, and reports whether it does. isLimited is true for a
// ClusterRole that is limited to an account which the group does not name.
func (k *records) add(o metav1.Object, isLimited bool) (isOurs bool) {
	owner, _ := olmcore.OwnerOf(o.GetLabels())
	isOfReplaced := k.replaced != nil && model.OwnerOf(k.replaced).Owns(o.GetLabels())
	if o.GetDeletionTimestamp() != nil || !isOfReplaced && !model.OwnerWithUID(k.version).Owns(o.GetLabels()) {
		return false
	}
	switch {
	case owner.UID == "": // OLM wrote it
	case isLimited && !isOfReplaced:
		k.limited.Insert(o.GetName())
	case isLimited:
	case isOfReplaced:
		k.namesOfReplaced.Insert(o.GetName())
	default:
		k.names.Insert(o.GetName())
	}
	return true
}

// prove reports whether a permission was granted, by its name or by its rules.
func (k *records) prove(g grant) bool {
	if k.names.Has(g.role.Name) {
		return true
	}
	if len(k.namesOfReplaced) > 0 && k.namesOfReplaced.Has(roleName(k.replaced.Name, g.account, g.role.Rules)) {
		return true
	}
	rules := k.rulesOf(g.account)
	for _, r := range k.lifted { // the name also proves rules on URLs, which were not lifted
		if r.Name == g.role.Name && model.OwnerOf(k.version).Owns(r.Labels) {
			rules = append(slices.Clip(rules), r.Rules[:len(r.Rules)-1]...)
		}
	}
	return g.isCoveredBy(rules)
}

// rulesOf returns the rules of the lifted ClusterRoles of a ServiceAccount, without readNamespaces, which is the last
// rule.
func (k *records) rulesOf(account rbac.Account) []rbacv1.PolicyRule {
	rules, known := k.rules[account.Name]
	if known {
		return rules
	}
	for _, r := range k.lifted {
		owner, _ := olmcore.OwnerOf(r.Labels)
		if lifted := r.Rules[:len(r.Rules)-1]; r.Name == roleName(owner.Name, account, lifted) {
			rules = append(rules, lifted...)
		}
	}
	k.rules[account.Name] = rules
	return rules
}

// recorded returns the names of the permissions that have a ClusterRole as their record. It returns none if the
// permissions hold in the whole cluster.
func recorded(f *facts) sets.Set[string] {
	names := sets.New[string]()
	if f.scope.cluster {
		return names
	}
	kept := recordsOf(f)
	for _, g := range f.grants {
		if len(g.rules) > 0 && (kept.limited.Has(g.role.Name) || kept.prove(g)) {
			names.Insert(g.role.Name)
		}
	}
	return names
}

// needsRecord reports whether the record of a permission should be written. That is the case if the permission is about
// to be granted in a target namespace, or if it is granted there and its record is limited to another account.
func (g grant) needsRecord(f *facts, places []place, isMissing bool) bool {
	record := f.observed[olmcore.KeyOf(recordOf(f.csv, g))]
	switch {
	case record == nil:
		return isMissing
	case !model.OwnerOf(f.csv).Owns(record.GetLabels()):
		return false
	case !model.OwnerWithUID(f.csv).Owns(record.GetLabels()):
		return isMissing
	}
	limit := record.GetAnnotations()[annotationLimit]
	isGranted := func(p place) bool { return g.isCopied(f, p) }
	return limit != "" && limit != f.accountName() && (isMissing || slices.ContainsFunc(places, isGranted))
}

// recordFor returns the record of a permission. The controller writes it, because the ServiceAccount of the
// OperatorGroup may not be allowed to create ClusterRoles.
func recordFor(f *facts, g grant) desired {
	record := recordOf(f.csv, g)
	if limit := f.accountName(); limit != "" {
		record.Annotations = map[string]string{annotationLimit: limit}
	}
	return desired{
		object:  record,
		isOurs:  func(have metav1.Object) bool { return model.OwnerOf(f.csv).Owns(have.GetLabels()) },
		created: true,
		limited: true,
		why: olmcore.Cause{
			Reason:  ReasonPermissionRecorded,
			Message: "it has no rules, and records a permission of the operator in its target namespaces",
		},
	}
}

// setAccountLimit sets or removes the annotation of a ClusterRole that limits it to an account.
func setAccountLimit(o olmcore.Object, account string) {
	annotations := maps.Clone(o.GetAnnotations())
	delete(annotations, annotationLimit)
	if account != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationLimit] = account
	}
	o.SetAnnotations(annotations)
}

// emptied returns the ClusterRoles of permissions that no longer hold in the whole cluster. They are kept as records.
func emptied(f *facts, records sets.Set[string]) (empty []desired) {
	names := namesOf(f.grants)
	for _, g := range f.grants {
		record := recordOf(f.csv, g)
		have := f.observed[olmcore.KeyOf(record)]
		if f.scope.cluster || !records.Has(g.role.Name) || have == nil || !isLifted(f.csv, have, names) {
			continue
		}
		empty = append(empty, desired{
			object: record, isOurs: func(metav1.Object) bool { return true }, why: olmcore.Cause{Reason: ReasonWithdrawn, Message: f.scope.reason},
		})
	}
	return empty
}
