// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// grant is a permission of the install strategy for the namespace of the operator.
type grant struct {
	// role and binding are the objects that an InstallPlan creates for the permission.
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
	account rbac.Account
	// rules are the rules of the permission without those on URLs, which a Role cannot grant. A permission without
	// rules is not granted in other namespaces. OLM grants it, and such a grant is kept.
	rules []rbacv1.PolicyRule
}

// grantsOf returns the permissions of a CSV for its namespace. sound is false if the spec has an error for which the
// CSV is not installed.
func grantsOf(c *v1alpha1.ClusterServiceVersion) (grants []grant, sound bool) {
	strategy := &c.Spec.InstallStrategy.StrategySpec
	isUnsound := func(p v1alpha1.StrategyDeploymentPermissions) bool {
		return p.ServiceAccountName == "" || slices.ContainsFunc(p.Rules, func(r rbacv1.PolicyRule) bool { return rbac.RuleError(&r) != "" })
	}
	planned, err := olmcore.PermissionObjects(c)
	if err != nil || slices.ContainsFunc(slices.Concat(strategy.Permissions, strategy.ClusterPermissions), isUnsound) {
		return nil, false
	}
	for _, o := range planned {
		switch o := o.(type) {
		case *rbacv1.Role:
			isOnURLs := func(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) > 0 }
			grants = append(grants, grant{role: o, rules: slices.DeleteFunc(slices.Clone(o.Rules), isOnURLs)})
		case *rbacv1.RoleBinding: // it follows its Role
			g := &grants[len(grants)-1]
			g.binding, g.account = o, rbac.Account{Namespace: c.Namespace, Name: o.Subjects[0].Name}
		}
	}
	return grants, true
}

// place is where permissions are granted: the whole cluster, or a target namespace.
type place struct {
	// copy is the copied CSV in the target namespace. It owns the Roles and RoleBindings there. Nil for the whole
	// cluster.
	copy *v1alpha1.ClusterServiceVersion
	// labels and owners are those of all roles and bindings of the place.
	labels map[string]string
	owners []metav1.OwnerReference
}

func placeOf(c, target *v1alpha1.ClusterServiceVersion) place {
	to := place{copy: target}
	if target == nil {
		to.labels = model.OwnerWithUID(c).Labels()
	} else {
		to.labels, to.owners = model.OwnerOf(target).Labels(), []metav1.OwnerReference{olmcore.OwnerReferenceTo(target)}
	}
	to.labels[olmcore.LabelManaged], to.labels[olmcore.LabelCopiedFrom] = "true", c.Namespace
	return to
}

// places returns the places of the scope.
func (f *facts) places() []place {
	places := f.barePlaces()
	for i, p := range places {
		places[i] = placeOf(f.csv, p.copy)
	}
	return places
}

// barePlaces returns the places of the scope without labels and owners. A namespace without a copied CSV is left out,
// because the copied CSV must own what is granted there.
func (f *facts) barePlaces() []place {
	if f.scope.cluster {
		return []place{{}}
	}
	copies := map[string]*v1alpha1.ClusterServiceVersion{}
	for _, o := range f.in.Copies.Items {
		if model.IsCopyOf(model.OriginalKey(f.csv), o) && o.DeletionTimestamp == nil && o.UID != "" {
			copies[o.Namespace] = o
		}
	}
	var places []place
	for _, namespace := range f.scope.namespaces {
		if o := copies[namespace]; o != nil {
			places = append(places, place{copy: o})
		}
	}
	return places
}

// lift returns the desired roles and bindings of the permissions of a CSV, and the removal of those that the spec or
// the OperatorGroup no longer asks for.
func lift(f *facts, approved approvals) plan {
	places := f.places()
	records := recorded(f)
	var next plan
	// 1. Empty the ClusterRoles that only record a permission.
	if isInstalled(f.csv) {
		next.desired = emptied(f, records)
	}
	// 2. Grant the permissions.
	isGrowing := false
	if f.isConfirmed && (f.scope.cluster || len(f.scope.namespaces) > 0) {
		next.diagnostics = approved.diagnostics
		isUnmet := isInstalled(f.csv) && areUnmet(f)
		for _, g := range f.grants {
			p := progressOf(f, g, places, approved, isUnmet)
			isGrowing = isGrowing || p.isMissing
			if p.needsRecord {
				next = next.withRecord(recordFor(f, g))
				records = records.Clone().Insert(g.role.Name)
			}
			parts := []plan{{diagnostics: g.notGranted(p)}}
			for _, to := range places {
				parts = append(parts, g.grantIn(f, to, p))
			}
			next = next.and(parts...)
		}
	}
	// 3. Withdraw the permissions that are not desired any more.
	if isInstalled(f.csv) {
		next.removals = append(withdrawals(f, places, records, isGrowing), next.removals...)
	}
	return next
}

// progress is how far a permission is granted.
type progress struct {
	// problem is why the permission is not granted. It is empty if nothing prevents that.
	problem string
	// isRefused is true if the permission was not approved, so existing objects are not updated.
	isRefused bool
	// isCreated is true if missing objects are created. isMissing is true if one of them does not exist.
	isCreated, isMissing bool
	// needsRecord is true if a ClusterRole without rules must record the permission.
	needsRecord bool
}

// progressOf returns how far a permission is granted. isUnmet is true if some permissions of the CSV are not granted
// yet.
func progressOf(f *facts, g grant, places []place, approved approvals, isUnmet bool) progress {
	p := progress{isRefused: approved.refused[g.role.Name]}
	if !isUnmet || len(g.rules) == 0 {
		return p
	}
	p.problem = g.problem(f)
	p.isCreated = p.problem == "" && !p.isRefused && g.isCreated(f)
	if p.isCreated {
		p.isMissing = g.gapOf(f, places).missing
		p.needsRecord = !f.scope.cluster && g.needsRecord(f, places, p.isMissing)
	}
	return p
}

// notGranted returns the Diagnostic about a permission that is not granted because its Role or RoleBinding was changed.
func (g grant) notGranted(p progress) []olmcore.Diagnostic {
	if p.problem == "" {
		return nil
	}
	return []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonRoleChanged, olmcore.RefOf(g.role), "",
		"%s, so the permission is not granted in other namespaces", p.problem)}
}

// grantIn returns the role and the binding of a permission in a place.
func (g grant) grantIn(f *facts, to place, p progress) plan {
	why := olmcore.Cause{Reason: ReasonPermissions, Message: "OperatorGroup " + f.group.Name + " targets all namespaces"}
	if to.copy != nil {
		why.Message = "OperatorGroup " + f.group.Name + " targets namespace " + to.copy.Namespace
	}
	isOurs := func(have metav1.Object) bool { return to.owns(f.csv, have) }
	role := desired{object: to.role(g), isOurs: isOurs, created: p.isCreated, kept: p.isRefused, as: f.account, why: why}
	binding := desired{object: to.binding(g), isOurs: isOurs, kept: p.isRefused, recreated: isInstalled(f.csv), as: f.account, why: why}
	bound := f.observed[olmcore.KeyOf(binding.object)]
	binding.created = p.isCreated && bound == nil && role.isObserved(f.observed)
	switch {
	case !role.isOwnedByAnother(f.observed):
		return plan{desired: []desired{role, binding}}
	case bound != nil && isOurs(bound) && bound.GetDeletionTimestamp() == nil:
		cause := olmcore.Cause{Reason: ReasonPermissions, Message: "it references a role that the library does not manage"}
		return plan{desired: []desired{role}, removals: []olmcore.Action{olmcore.DeleteOf(bound, cause)}}
	}
	return plan{desired: []desired{role}}
}

// isInstalled reports whether the operator of a CSV is installed or is being installed. In other phases nothing is
// granted and nothing is withdrawn. A failed CSV counts, because it may have failed for a lack of these permissions.
func isInstalled(c *v1alpha1.ClusterServiceVersion) bool {
	switch c.Status.Phase {
	case v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseFailed,
		v1alpha1.CSVPhaseReplacing:
		return true
	}
	return false
}

// isBeingInstalled reports whether the operator of a CSV is being installed or upgraded. A CSV that is adopted from OLM
// is usually Succeeded.
func isBeingInstalled(c *v1alpha1.ClusterServiceVersion) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseInstallReady || c.Status.Phase == v1alpha1.CSVPhaseInstalling
}

// areUnmet reports whether some permissions are not granted in the whole cluster by other ClusterRoles than those that
// were lifted for the CSV.
func areUnmet(f *facts) bool {
	names := namesOf(f.grants)
	var roles []*rbacv1.ClusterRole
	for _, o := range f.in.ClusterRoles.Items {
		if !isLifted(f.csv, o, names) {
			roles = append(roles, o)
		}
	}
	var bindings []*rbacv1.ClusterRoleBinding
	for _, o := range f.in.ClusterRoleBindings.Items {
		if !isLifted(f.csv, o, names) {
			bindings = append(bindings, o)
		}
	}
	grantedTo := rbac.Grants(f.csv, nil, nil, roles, bindings)
	return slices.ContainsFunc(f.grants, func(g grant) bool {
		granted := grantedTo(g.account)
		return slices.ContainsFunc(g.rules, func(r rbacv1.PolicyRule) bool { return !granted.InCluster(r) })
	})
}

// isCreated reports whether the ServiceAccount, the Role and the RoleBinding exist in the namespace of the operator,
// and no other object owns the ServiceAccount. Otherwise the requirements of the CSV are not met, and its status
// reports that.
func (g grant) isCreated(f *facts) bool {
	account, exists := model.Find(f.in.ServiceAccounts.Items, f.csv.Namespace, g.account.Name)
	return exists && !model.IsOwnedByAnother(account.OwnerReferences, f.csv.UID) &&
		f.observed[olmcore.KeyOf(g.role)] != nil && f.observed[olmcore.KeyOf(g.binding)] != nil
}

// problem returns how the live Role and RoleBinding of a permission differ from those that an InstallPlan creates for
// the CSV, or an empty text if they do not differ or do not exist. Additional rules and subjects do not count, because
// they are granted nowhere else.
func (g grant) problem(f *facts) string {
	isOurs := func(o metav1.Object) bool {
		return model.OwnerOf(f.csv).Owns(o.GetLabels()) && olmcore.OwnedBy(o, f.csv.UID)
	}
	if role, is := f.observed[olmcore.KeyOf(g.role)].(*rbacv1.Role); is {
		live := rbac.GrantedBy(role.Rules)
		switch {
		case !isOurs(role):
			return "Role " + role.Name + " does not belong to this ClusterServiceVersion"
		case slices.ContainsFunc(g.rules, func(r rbacv1.PolicyRule) bool { return !live.InNamespace(r) }):
			return "Role " + role.Name + " lacks rules of the spec"
		}
	}
	if binding, is := f.observed[olmcore.KeyOf(g.binding)].(*rbacv1.RoleBinding); is {
		switch {
		case !isOurs(binding):
			return "RoleBinding " + binding.Name + " does not belong to this ClusterServiceVersion"
		case binding.RoleRef != g.binding.RoleRef || !g.account.IsBound(binding.Subjects, f.csv.Namespace):
			return "RoleBinding " + binding.Name + " does not bind ServiceAccount " + g.account.Name
		}
	}
	return ""
}

// readNamespaces is the rule that OLM adds to the rules of a Role that becomes a ClusterRole.
var readNamespaces = rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"namespaces"}}

func (p place) role(g grant) olmcore.Object {
	if p.copy != nil {
		return &rbacv1.Role{TypeMeta: g.role.TypeMeta, ObjectMeta: p.meta(&g.role.ObjectMeta), Rules: g.rules}
	}
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: g.role.APIVersion, Kind: "ClusterRole"},
		ObjectMeta: p.meta(&g.role.ObjectMeta), Rules: append(slices.Clip(g.rules), readNamespaces),
	}
}

func (p place) binding(g grant) olmcore.Object {
	meta := p.meta(&g.binding.ObjectMeta)
	ref := p.roleRef(g)
	subjects := g.binding.Subjects
	if p.copy != nil {
		return &rbacv1.RoleBinding{TypeMeta: g.binding.TypeMeta, ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: g.binding.APIVersion, Kind: "ClusterRoleBinding"},
		ObjectMeta: meta, RoleRef: ref, Subjects: subjects,
	}
}

// roleRef returns the roleRef of the binding of a permission in a place.
func (p place) roleRef(g grant) rbacv1.RoleRef {
	ref := g.binding.RoleRef
	if p.copy == nil {
		ref.Kind = "ClusterRole"
	}
	return ref
}

// meta returns the metadata of a role or binding in a place. It has the name and the hash of the object that an
// InstallPlan creates, and no label of the live object: a tenant could label a Role so that it is aggregated into the
// roles of all users.
func (p place) meta(planned *metav1.ObjectMeta) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: planned.Name, OwnerReferences: p.owners}
	if p.copy != nil {
		meta.Namespace = p.copy.Namespace
	}
	meta.Labels, _ = olmcore.MergeMaps(planned.Labels, p.labels)
	return meta
}

// owns reports whether the labels and owners of a role or binding in a place are those of the CSV. Objects of an
// earlier CSV of the same name count.
func (p place) owns(c *v1alpha1.ClusterServiceVersion, o metav1.Object) bool {
	if p.copy == nil {
		return model.OwnerOf(c).Owns(o.GetLabels())
	}
	isCopy := func(r metav1.OwnerReference) bool { return model.IsCSVReference(r) && r.Name == c.Name }
	return model.OwnerOf(p.copy).Owns(o.GetLabels()) && o.GetLabels()[olmcore.LabelCopiedFrom] == c.Namespace &&
		slices.ContainsFunc(o.GetOwnerReferences(), isCopy)
}

func namesOf(grants []grant) sets.Set[string] {
	names := sets.New[string]()
	for _, g := range grants {
		names.Insert(g.role.Name)
	}
	return names
}

// isLifted reports whether a ClusterRole or ClusterRoleBinding was lifted from a Role or RoleBinding of the CSV. A
// label shows this, or the name if OLM created it. Tenants can write neither.
func isLifted(c *v1alpha1.ClusterServiceVersion, o metav1.Object, names sets.Set[string]) bool {
	labels := o.GetLabels()
	return model.OwnerOf(c).Owns(labels) && (labels[olmcore.LabelCopiedFrom] == c.Namespace || names.Has(o.GetName()))
}

// withdrawals returns the deletions of roles and bindings that should not exist any more, bindings first. The
// controller deletes them, also if the OperatorGroup names an account. The ClusterRole of a permission that the spec
// still has is kept without rules as its record: see recordOf. The ClusterRole of a permission that the spec no longer
// has is kept without its binding while another permission is created, because it may prove that permission.
func withdrawals(f *facts, places []place, records sets.Set[string], isGrowing bool) []olmcore.Action {
	names := namesOf(f.grants)
	isRole := func(o olmcore.Object) bool {
		_, is := o.(*rbacv1.ClusterRole)
		return is
	}
	byNamespace := map[string]place{}
	for _, p := range places {
		if p.copy != nil {
			byNamespace[p.copy.Namespace] = p
		}
	}
	// why returns why an object should be deleted, empty if it should not.
	why := func(o olmcore.Object) string {
		p, targeted := byNamespace[o.GetNamespace()]
		switch inCluster := o.GetNamespace() == ""; {
		case inCluster && isLifted(f.csv, o, names) && !f.scope.cluster && !(isRole(o) && records.Has(o.GetName())):
			return f.scope.reason
		case names.Has(o.GetName()), isRole(o) && isGrowing:
			return ""
		case inCluster && isLifted(f.csv, o, names), targeted && p.owns(f.csv, o):
			return "ClusterServiceVersion " + f.csv.Name + " does not have this permission any more"
		}
		return ""
	}
	return slices.Concat(
		deletions(f.in.ClusterRoleBindings.Items, why), deletions(f.in.RoleBindings.Items, why),
		deletions(f.in.ClusterRoles.Items, why), deletions(f.in.Roles.Items, why),
	)
}

func deletions[T olmcore.Object](items []T, why func(olmcore.Object) string) (actions []olmcore.Action) {
	for _, o := range items {
		message := why(o)
		if message != "" && o.GetDeletionTimestamp() == nil {
			actions = append(actions, olmcore.DeleteOf(o, olmcore.Cause{Reason: ReasonWithdrawn, Message: message}))
		}
	}
	slices.SortFunc(actions, deployment.ByTarget)
	return actions
}
