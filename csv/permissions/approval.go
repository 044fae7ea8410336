// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/olmcore"
)

// AnnotationAllowed is an annotation of a Namespace by which a cluster administrator allows permissions that no
// InstallPlan lists. The permissions are then granted where the operators of the Namespace watch. The value is a list
// of digests, separated by commas. ReasonPermissionNotApproved reports the digest of a permission. A digest is the hash
// of a ServiceAccount and its rules, so it also allows the same permission of other versions.
const AnnotationAllowed = olmcore.KeyPrefix + "allowed-permissions"

// maxManifest is the size in bytes up to which the manifest of a Role or RoleBinding is read.
const maxManifest = 1 << 20

// maxNamed is the number of permissions or values that Diagnostics name at most.
const maxNamed = 5

// manifest is the content of the manifest of a step: a Role, a RoleBinding, or a reference to the ConfigMap of an
// unpacked bundle.
type manifest struct {
	APIVersion        string              `json:"apiVersion"`
	Kind              string              `json:"kind"`
	Rules             []rbacv1.PolicyRule `json:"rules"`
	RoleRef           rbacv1.RoleRef      `json:"roleRef"`
	Subjects          []rbacv1.Subject    `json:"subjects"`
	CatalogSourceName string              `json:"catalogSourceName"`
}

// isReference reports whether a manifest refers to the ConfigMap of an unpacked bundle.
func (m *manifest) isReference() bool { return m.Kind == "ConfigMap" && m.CatalogSourceName != "" }

// isOf reports whether a manifest has a kind of RBAC. OLM writes no kind.
func (m *manifest) isOf(kind string) bool {
	group, _, _ := strings.Cut(m.APIVersion, "/")
	return (m.Kind == "" || m.Kind == kind) && (m.APIVersion == "" || group == rbacv1.GroupName)
}

// planSteps contains the steps of one InstallPlan for the Role and the RoleBinding of a permission.
type planSteps struct {
	// plan is the name of the InstallPlan.
	plan string
	// former is the ServiceAccount with whose rights the plan ran if the OperatorGroup does not name it any more, else
	// nil.
	former *corev1.ObjectReference
	// isComplete is true if the plan applied all its steps.
	isComplete bool
	// role and binding are the steps. binding is nil if the plan has no such step.
	role, binding *v1alpha1.Step
}

// stepsOf returns the steps of the InstallPlans of the namespace for the Roles of a CSV, by the name of the Role. Only
// the status of a plan is evidence, because OLM's roles do not let users write the status. A plan that ran with the
// rights of a ServiceAccount proves nothing if the OperatorGroup does not name that account any more: the account
// limited what the plan could grant.
func stepsOf(f *facts) map[string][]planSteps {
	all := map[string][]planSteps{}
	for _, p := range f.in.InstallPlans.Items {
		if p.Namespace != f.csv.Namespace {
			continue
		}
		former := p.Status.AttenuatedServiceAccountRef
		if former != nil && former.Name == f.accountName() {
			former = nil
		}
		bindings := map[string]*v1alpha1.Step{}
		var roles []*v1alpha1.Step
		for _, s := range p.Status.Plan {
			switch {
			case s == nil, s.Resolving != f.csv.Name, s.Resource.Group != rbacv1.GroupName:
			case s.Resource.Kind == "Role":
				roles = append(roles, s)
			case s.Resource.Kind == "RoleBinding":
				bindings[s.Resource.Name] = s
			}
		}
		for _, s := range roles {
			all[s.Resource.Name] = append(all[s.Resource.Name], planSteps{
				plan: p.Name, former: former, isComplete: p.Status.Phase == v1alpha1.InstallPlanPhaseComplete,
				role: s, binding: bindings[s.Resource.Name],
			})
		}
	}
	return all
}

// planProblem returns why no InstallPlan proves that a permission was installed, or an empty text if the steps of one
// plan prove it. A step must be applied, because then its plan was approved. If the manifest is in the ConfigMap of an
// unpacked bundle, the name of the Role is the proof: it is a hash of the ServiceAccount and the rules.
func (g grant) planProblem(c *v1alpha1.ClusterServiceVersion, plans []planSteps) string {
	why := fmt.Sprintf("no InstallPlan of namespace %s lists the Role as a step of ClusterServiceVersion %s", c.Namespace, c.Name)
	for _, steps := range plans {
		problem := g.stepProblem(steps)
		if problem == "" {
			return ""
		}
		why = "InstallPlan " + steps.plan + " " + problem
	}
	return why
}

// stepProblem returns why the steps of a plan do not prove a permission, or an empty text if they do.
func (g grant) stepProblem(steps planSteps) string {
	isApplied := steps.role.Status == v1alpha1.StepStatusCreated || steps.role.Status == v1alpha1.StepStatusPresent
	switch {
	case steps.former != nil:
		return fmt.Sprintf("ran as ServiceAccount %s, which the OperatorGroup does not name any more", quotedAccount(steps.former.Name))
	case !steps.isComplete && !isApplied:
		return "lists it but has not applied it"
	}
	role, problem := manifestOf(steps.role)
	switch {
	case problem != "":
		return problem
	case role.isReference():
	case !role.isOf("Role"), !equality.Semantic.DeepEqual(role.Rules, g.role.Rules):
		return "lists it with other rules"
	}
	if steps.binding == nil {
		return ""
	}
	binding, problem := manifestOf(steps.binding)
	isSame := binding.isOf("RoleBinding") && binding.RoleRef == g.binding.RoleRef &&
		equality.Semantic.DeepEqual(binding.Subjects, g.binding.Subjects)
	if problem == "" && !binding.isReference() && !isSame {
		problem = "lists its RoleBinding with another role or other subjects"
	}
	return problem
}

// manifestOf returns the manifest of a step, or the problem for which it cannot be read.
func manifestOf(s *v1alpha1.Step) (m manifest, problem string) {
	if len(s.Resource.Manifest) > maxManifest {
		return m, fmt.Sprintf("lists it with a manifest of %d bytes, more than %d", len(s.Resource.Manifest), maxManifest)
	}
	if err := json.Unmarshal([]byte(s.Resource.Manifest), &m); err != nil {
		return m, fmt.Sprintf("lists it with a manifest that cannot be read: %.200q", err.Error())
	}
	return m, ""
}

// digest returns the value for which AnnotationAllowed allows a permission.
func (g grant) digest() string {
	data, _ := json.Marshal(struct { // strings always encode
		ServiceAccountName string              `json:"serviceAccountName"`
		Rules              []rbacv1.PolicyRule `json:"rules"`
	}{g.account.Name, g.rules})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var isDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// allowed returns the digests that the annotation of a Namespace lists, sorted, and its values that are not digests.
func allowed(namespaces []*corev1.Namespace, name string) (digests, malformed []string) {
	for _, n := range namespaces {
		if n.Name != name || n.Annotations[AnnotationAllowed] == "" {
			continue
		}
		for value := range strings.SplitSeq(n.Annotations[AnnotationAllowed], ",") {
			if value = strings.TrimSpace(value); isDigest.MatchString(value) {
				digests = append(digests, value)
			} else {
				malformed = append(malformed, value)
			}
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests), malformed
}

// approvals contains the permissions that need a proof and have none.
type approvals struct {
	// refused contains the names of their Roles.
	refused map[string]bool
	// diagnostics report them.
	diagnostics []olmcore.Diagnostic
}

// approve checks which permissions that need a proof are allowed by an InstallPlan or by a cluster administrator.
func approve(f *facts, open []grant) (a approvals) {
	if len(open) == 0 {
		return a
	}
	c := f.csv
	digests, malformed := allowed(f.in.Namespaces.Items, c.Namespace)
	plans := stepsOf(f)
	a.refused = map[string]bool{}
	for _, g := range open {
		why := g.planProblem(c, plans[g.role.Name])
		_, isAllowed := slices.BinarySearch(digests, g.digest())
		if isAllowed || why == "" {
			continue
		}
		a.refused[g.role.Name] = true
		if len(a.refused) <= maxNamed {
			a.diagnostics = append(a.diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonPermissionNotApproved, olmcore.RefOf(g.role), "",
				"ServiceAccount %s has the rules of Role %q only in namespace %s, and not in %s, because %s. "+
					"The Role allows: %s. If you trust these rules, run `%s`",
				quotedAccount(g.account.Name), g.role.Name, c.Namespace, f.scope, why, g.text(), allowance(c.Namespace, digests, g.digest())))
		}
	}
	if more := len(a.refused) - maxNamed; more > 0 {
		a.diagnostics = append(a.diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonPermissionNotApproved, olmcore.RefOf(c), "",
			"the operator has %d more permissions only in namespace %s, and not in %s", more, c.Namespace, f.scope))
	}
	if len(malformed) > 0 {
		a.diagnostics = append(a.diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonInvalidApproval, olmcore.RefOf(c), "",
			"annotation %s of Namespace %s has values that are not digests, so they allow nothing: %s. Remove them",
			AnnotationAllowed, c.Namespace, quoted(malformed)))
	}
	return a
}

// unprovenAdopted reports the adopted permissions that nothing proves. They stay, but would not be granted now. If the
// lists were not read, it reports nothing.
func unprovenAdopted(f *facts) (diagnostics []olmcore.Diagnostic) {
	if !f.scope.known || !f.in.InstallPlans.Complete || !f.in.Namespaces.Complete {
		return nil
	}
	c := f.csv
	digests, _ := allowed(f.in.Namespaces.Items, c.Namespace)
	plans, unproven := stepsOf(f), 0
	for _, g := range adopted(f) {
		why := g.planProblem(c, plans[g.role.Name])
		_, isAllowed := slices.BinarySearch(digests, g.digest())
		if isAllowed || why == "" {
			continue
		}
		if unproven++; unproven > maxNamed {
			continue
		}
		diagnostics = append(diagnostics, olmcore.Diagnose(olmcore.Info, ReasonAdoptedPermission, olmcore.RefOf(g.role), "",
			"ServiceAccount %s has the rules of Role %q in %s. They stay, although %s: %s. "+
				"If you do not trust these rules, remove them from spec.install of ClusterServiceVersion %s. If you do, run `%s`",
			quotedAccount(g.account.Name), g.role.Name, f.scope, why, g.text(), c.Name, allowance(c.Namespace, digests, g.digest())))
	}
	if more := unproven - maxNamed; more > 0 {
		diagnostics = append(diagnostics, olmcore.Diagnose(olmcore.Info, ReasonAdoptedPermission, olmcore.RefOf(c), "",
			"the operator has %d more permissions in %s that no InstallPlan proves. Allow or remove the ones that are named first",
			more, f.scope))
	}
	return diagnostics
}

// allowance returns the command that adds a digest to the annotation of a Namespace.
func allowance(namespace string, digests []string, digest string) string {
	all := slices.Concat(digests, []string{digest})
	return fmt.Sprintf("kubectl annotate namespace %s %s=%s --overwrite", namespace, AnnotationAllowed, strings.Join(all, ","))
}

// maxText is the length in bytes after which the rules in a Diagnostic are cut.
const maxText = 1500

// text returns the rules of a permission in one line. Tenants write the rules, so each is quoted. The text says where
// it is cut, so that an administrator who allows a permission misses no rule.
func (g grant) text() string {
	text := ""
	for i, r := range g.rules {
		if i > 0 {
			text += "; "
		}
		if text += fmt.Sprintf("%q", line(r)); len(text) > maxText {
			return strings.ToValidUTF8(text[:maxText], "") + " ... (cut here; read all rules in spec.install of the ClusterServiceVersion)"
		}
	}
	return text
}

// quotedAccount returns the name of a ServiceAccount. It is quoted if it is not a valid name.
func quotedAccount(account string) string {
	if len(validation.IsDNS1123Subdomain(account)) > 0 {
		return fmt.Sprintf("%.100q", account)
	}
	return account
}

// quoted returns values in quotes, separated by commas. It names at most maxNamed.
func quoted(values []string) string {
	var texts []string
	for _, v := range values[:min(len(values), maxNamed)] {
		texts = append(texts, fmt.Sprintf("%.80q", v))
	}
	if more := len(values) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}
