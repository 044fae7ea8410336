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

// AnnotationAllowed is an annotation of a Namespace with which a cluster administrator allows permissions of operators in
// it to be granted where the operators watch, although no InstallPlan lists them. Its value is a list of digests, with
// commas between; ReasonPermissionNotApproved names the digest of a permission. A digest is one of a ServiceAccount and
// its rules, so it holds for other versions of the operator, and for nothing else.
const AnnotationAllowed = olmcore.KeyPrefix + "allowed-permissions"

// maxManifest is how large the manifest of a Role may be that is read, in bytes.
const maxManifest = 1 << 20

// maxNamed is how many permissions or values Diagnostics name at most.
const maxNamed = 5

// listed is what the manifest of a step says: of a Role, of a RoleBinding, or of where an unpacked bundle is.
type listed struct {
	APIVersion        string              `json:"apiVersion"`
	Kind              string              `json:"kind"`
	Rules             []rbacv1.PolicyRule `json:"rules"`
	RoleRef           rbacv1.RoleRef      `json:"roleRef"`
	Subjects          []rbacv1.Subject    `json:"subjects"`
	CatalogSourceName string              `json:"catalogSourceName"`
}

// isReference reports whether a manifest refers to the ConfigMap of an unpacked bundle.
func (l *listed) isReference() bool { return l.Kind == "ConfigMap" && l.CatalogSourceName != "" }

// isOf reports whether a manifest is of a kind of RBAC. OLM leaves the kind out.
func (l *listed) isOf(kind string) bool {
	group, _, _ := strings.Cut(l.APIVersion, "/")
	return (l.Kind == "" || l.Kind == kind) && (l.APIVersion == "" || group == rbacv1.GroupName)
}

// listing is the steps of one InstallPlan for the Role and the RoleBinding of a permission; binding may be nil.
type listing struct {
	plan string
	// former is the ServiceAccount with whose rights the plan ran if the OperatorGroup does not name it any more, else nil.
	former *corev1.ObjectReference
	// isComplete is true if the plan applied all its steps.
	isComplete    bool
	role, binding *v1alpha1.Step
}

// listings returns the steps that the plans of the namespace have for Roles of a CSV, by the name of the Role. Only the
// status of a plan counts: OLM's roles for users do not let them write it. A plan that ran with the rights of a ServiceAccount
// proves nothing if the OperatorGroup does not name that account any more: the account limited what the plan could grant.
func listings(in *Input) map[string][]listing {
	c, all := in.ClusterServiceVersion, map[string][]listing{}
	account := limitOf(in)
	for _, p := range in.InstallPlans.Items {
		if p.Namespace != c.Namespace {
			continue
		}
		former := p.Status.AttenuatedServiceAccountRef
		if former != nil && former.Name == account {
			former = nil
		}
		bindings := map[string]*v1alpha1.Step{}
		var roles []*v1alpha1.Step
		for _, s := range p.Status.Plan {
			switch {
			case s == nil, s.Resolving != c.Name, s.Resource.Group != rbacv1.GroupName:
			case s.Resource.Kind == "Role":
				roles = append(roles, s)
			case s.Resource.Kind == "RoleBinding":
				bindings[s.Resource.Name] = s
			}
		}
		for _, s := range roles {
			all[s.Resource.Name] = append(all[s.Resource.Name], listing{
				plan: p.Name, former: former, isComplete: p.Status.Phase == v1alpha1.InstallPlanPhaseComplete,
				role: s, binding: bindings[s.Resource.Name],
			})
		}
	}
	return all
}

// unlisted says why the steps of plans do not prove that a permission was installed; empty when those of one plan do. A
// step must be applied, so that its plan was approved. The name of the Role is a hash of the ServiceAccount and the rules:
// it is the proof where the manifest is in the ConfigMap of an unpacked bundle.
func (g grant) unlisted(c *v1alpha1.ClusterServiceVersion, of []listing) string {
	why := fmt.Sprintf("no InstallPlan of namespace %s lists the Role as a step of ClusterServiceVersion %s", c.Namespace, c.Name)
	for _, l := range of {
		problem := g.mismatch(l)
		if problem == "" {
			return ""
		}
		why = "InstallPlan " + l.plan + " " + problem
	}
	return why
}

// mismatch says why the steps of a plan do not prove a permission; empty when they do.
func (g grant) mismatch(l listing) string {
	isApplied := l.role.Status == v1alpha1.StepStatusCreated || l.role.Status == v1alpha1.StepStatusPresent
	switch {
	case l.former != nil:
		return fmt.Sprintf("ran as ServiceAccount %s, which the OperatorGroup does not name any more", named(l.former.Name))
	case !l.isComplete && !isApplied:
		return "lists it but has not applied it"
	}
	said, problem := manifestOf(l.role)
	switch {
	case problem != "":
		return problem
	case said.isReference():
	case !said.isOf("Role"), !equality.Semantic.DeepEqual(said.Rules, g.role.Rules):
		return "lists it with other rules"
	}
	if l.binding == nil {
		return ""
	}
	said, problem = manifestOf(l.binding)
	isBound := said.isOf("RoleBinding") && said.RoleRef == g.binding.RoleRef && equality.Semantic.DeepEqual(said.Subjects, g.binding.Subjects)
	if problem == "" && !said.isReference() && !isBound {
		problem = "binds the Role to other subjects"
	}
	return problem
}

// manifestOf reads the manifest of a step, and says why it cannot.
func manifestOf(s *v1alpha1.Step) (said listed, problem string) {
	if len(s.Resource.Manifest) > maxManifest {
		return said, fmt.Sprintf("lists it with a manifest of %d bytes, more than %d", len(s.Resource.Manifest), maxManifest)
	}
	if err := json.Unmarshal([]byte(s.Resource.Manifest), &said); err != nil {
		return said, fmt.Sprintf("lists it with a manifest that cannot be read: %.200q", err.Error())
	}
	return said, ""
}

// digest is what AnnotationAllowed lists for a permission.
func (g grant) digest() string {
	data, _ := json.Marshal(struct { // strings always encode
		ServiceAccountName string              `json:"serviceAccountName"`
		Rules              []rbacv1.PolicyRule `json:"rules"`
	}{g.account.Name, g.rules})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var isDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// allowed returns the digests that a Namespace lists, sorted, and the values that are none.
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

// approvals is what InstallPlans and the cluster administrator allow of what was not granted before.
type approvals struct {
	refused map[string]bool // the names of Roles
	said    []olmcore.Diagnostic
}

// approve judges permissions that need proof.
func approve(in *Input, open []grant, where scope) (a approvals) {
	if len(open) == 0 {
		return a
	}
	c := in.ClusterServiceVersion
	digests, malformed := allowed(in.Namespaces.Items, c.Namespace)
	listed := listings(in)
	a.refused = map[string]bool{}
	for _, g := range open {
		why := g.unlisted(c, listed[g.role.Name])
		if _, isAllowed := slices.BinarySearch(digests, g.digest()); isAllowed || why == "" {
			continue
		}
		a.refused[g.role.Name] = true
		if len(a.refused) <= maxNamed {
			a.said = append(a.said, olmcore.Diagnose(olmcore.Warning, ReasonPermissionNotApproved, olmcore.RefOf(g.role), "",
				"ServiceAccount %s has the rules of Role %q in namespace %s only, and not in %s, because %s. "+
					"The operator lacks there: %s. If you trust these rules, run `%s`",
				named(g.account.Name), g.role.Name, c.Namespace, where, why, g.text(), allowance(c.Namespace, digests, g.digest())))
		}
	}
	if more := len(a.refused) - maxNamed; more > 0 {
		a.said = append(a.said, olmcore.Diagnose(olmcore.Warning, ReasonPermissionNotApproved, olmcore.RefOf(c), "",
			"the operator has %d more permissions in namespace %s only, and not in %s", more, c.Namespace, where))
	}
	if len(malformed) > 0 {
		a.said = append(a.said, olmcore.Diagnose(olmcore.Warning, ReasonInvalidApproval, olmcore.RefOf(c), "",
			"annotation %s of Namespace %s has values that are no digests and allow nothing: %s. Remove them",
			AnnotationAllowed, c.Namespace, quoted(malformed)))
	}
	return a
}

// unprovenAdopted reports the adopted permissions that nothing proves. They stay, but would not be granted now. If the
// lists were not read, it reports nothing.
func unprovenAdopted(in *Input, observed index, grants []grant, where scope) (said []olmcore.Diagnostic) {
	if !in.InstallPlans.Complete || !in.Namespaces.Complete {
		return nil
	}
	c := in.ClusterServiceVersion
	digests, _ := allowed(in.Namespaces.Items, c.Namespace)
	listed := listings(in)
	for _, g := range adopted(in, observed, grants, where) {
		why := g.unlisted(c, listed[g.role.Name])
		if _, isAllowed := slices.BinarySearch(digests, g.digest()); isAllowed || why == "" || len(said) == maxNamed {
			continue
		}
		said = append(said, olmcore.Diagnose(olmcore.Info, ReasonAdoptedPermission, olmcore.RefOf(g.role), "",
			"ServiceAccount %s has the rules of Role %q in %s. They stay, although %s: %s. "+
				"If you do not trust these rules, remove them from spec.install of ClusterServiceVersion %s. If you do, run `%s`",
			named(g.account.Name), g.role.Name, where, why, g.text(), c.Name, allowance(c.Namespace, digests, g.digest())))
	}
	return said
}

// allowance is the command that adds a digest to those that a Namespace has.
func allowance(namespace string, digests []string, digest string) string {
	all := slices.Concat(digests, []string{digest})
	return fmt.Sprintf("kubectl annotate namespace %s %s=%s --overwrite", namespace, AnnotationAllowed, strings.Join(all, ","))
}

// maxText is how long the rules in a Diagnostic are at most, in bytes.
const maxText = 1500

// text is the rules of a permission in a line. Tenants write them, so each is quoted, and the text says when it is cut: who
// allows a permission must not miss a rule.
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

// named is the name of a ServiceAccount, quoted where it is none.
func named(account string) string {
	if len(validation.IsDNS1123Subdomain(account)) > 0 {
		return fmt.Sprintf("%.100q", account)
	}
	return account
}

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
