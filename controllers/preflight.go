// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	rbacvalidation "k8s.io/component-helpers/auth/rbac/validation"

	"github.com/olmcore/olm/olmcore"
)

// Preflight looks for what keeps controllers from working in a cluster, before they run. It changes nothing.
type Preflight struct {
	// Reader reads the API server, or a copy of it: what that was not filled with, and what the process may not read, is
	// not judged.
	Reader olmcore.Reader
	// Unjudged, when set, hears of each check that could not look, and why.
	Unjudged func(check string, why error)
	// Options are those of the controllers, Only their names, as for Set.Only. An empty KubernetesVersion is not judged.
	Options Options
	Only    []string
	// Allowed asks the API server for a SelfSubjectAccessReview; nil: rights are not judged.
	Allowed func(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error)
	// Ignore are names of Checks that are left out.
	Ignore []string
}

// Refusal is what a check found: why the controllers shall not run, and what to do about it.
type Refusal struct {
	// Check is one of Checks.
	Check, Problem string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Problem }

// checks is the table: a check is a row. Each returns what is wrong, "" for nothing, or why it could not tell.
var checks = []struct {
	name string
	find func(Preflight, context.Context) (string, error)
}{
	{"version", Preflight.version},
	{"crds", Preflight.definitions},
	{"rights", Preflight.rights},
	{"olm", Preflight.otherOLM},
}

// Checks returns the names of the checks that Run makes: version, whether the API server is too old; crds, whether
// OLM's CustomResourceDefinitions keep what is written; rights, whether the process may do what it needs to; olm,
// whether an OLM runs beside it.
func Checks() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// Run makes the checks. The error joins a *Refusal for each that found something, and what could not be read; or is an
// *olmcore.InputError of Ignore or Only. A check that could not look is no error: see Unjudged.
func (p Preflight) Run(ctx context.Context) error {
	names := Checks()
	for _, name := range p.Ignore {
		if !slices.Contains(names, name) {
			return &olmcore.InputError{Field: "ignore", Problem: isNone(name, "check", names)}
		}
	}
	if err := New(&p.Options).Only(p.Only...); err != nil {
		return err
	}
	var found []error
	for _, c := range checks {
		if slices.Contains(p.Ignore, c.name) {
			continue
		}
		problem, err := c.find(p, ctx)
		var blind *blindError
		switch {
		case errors.As(err, &blind):
			if p.Unjudged != nil {
				p.Unjudged(c.name, err)
			}
		case err != nil:
			found = append(found, fmt.Errorf("the check %s failed: %w", c.name, err))
		case problem != "":
			found = append(found, &Refusal{Check: c.name, Problem: problem})
		}
	}
	return errors.Join(found...)
}

// blindError is why a check could not look.
type blindError struct{ error }

// reading returns an error of reading, as a blindError where it means that nothing is known: it was not read, or may
// not be.
func reading(err error) error {
	if errors.Is(err, olmcore.ErrNotRead) || olmcore.Classify(err) == olmcore.Forbidden {
		return &blindError{err}
	}
	return err
}

// oldestKubernetes is the first version that serves all of olmcore.Kinds: PodDisruptionBudgets of policy/v1 came last.
var oldestKubernetes = version.MustParseGeneric("1.21")

func (p Preflight) version(context.Context) (string, error) {
	if p.Options.KubernetesVersion == "" {
		return "", nil
	}
	v, err := version.ParseGeneric(p.Options.KubernetesVersion)
	if err != nil {
		return fmt.Sprintf("the API server's version is %q, which is none: %v", p.Options.KubernetesVersion, err), nil
	}
	if v.Major() > 0 && v.LessThan(oldestKubernetes) { // one that was built without a version says 0.0.0
		return fmt.Sprintf(
			"the API server is Kubernetes %s, and %s is the oldest that serves all kinds that are needed: update the cluster",
			v,
			oldestKubernetes,
		), nil
	}
	return "", nil
}

// maxNamed is how many of a list a Refusal names.
const maxNamed = 10

// listed joins the first of a list.
func listed(all []string, separator string) string {
	if len(all) > maxNamed {
		all = append(slices.Clone(all[:maxNamed]), fmt.Sprintf("and %d more", len(all)-maxNamed))
	}
	return strings.Join(all, separator)
}

func (p Preflight) rights(ctx context.Context) (string, error) {
	if p.Allowed == nil {
		return "", nil
	}
	needed := p.Options.Rights(p.Only...)
	missing, err := p.forbidden(ctx, "", needed.Cluster)
	if err != nil {
		return "", err
	}
	if len(needed.Namespace) > 0 {
		for _, namespace := range needed.Namespaces {
			more, err := p.forbidden(ctx, namespace, needed.Namespace)
			if err != nil {
				return "", err
			}
			missing = append(missing, more...)
		}
	}
	if len(missing) == 0 {
		return "", nil
	}
	return "the account of the kubeconfig, or of the Pod, may not " + listed(missing, "; ") +
		": bind it to the ClusterRole of examples/controllerruntime/config/rbac, or take another account", nil
}

// forbidden returns what of some rules is not allowed in a namespace, "" for all of them, a line for each resource.
func (p Preflight) forbidden(ctx context.Context, namespace string, rules []rbacv1.PolicyRule) (missing []string, err error) {
	everything := authorizationv1.ResourceAttributes{Namespace: namespace, Group: "*", Resource: "*", Verb: "*"}
	all, err := p.Allowed(ctx, everything)
	if err != nil || all {
		return nil, err
	}
	for _, rule := range rules {
		for _, full := range rule.Resources {
			resource, subresource, _ := strings.Cut(full, "/")
			var verbs []string
			for _, verb := range rule.Verbs {
				allowed, err := p.Allowed(ctx, authorizationv1.ResourceAttributes{
					Namespace: namespace, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Verb: verb,
				})
				if err != nil {
					return nil, err
				}
				if !allowed {
					verbs = append(verbs, verb)
				}
			}
			if len(verbs) > 0 {
				where := ""
				if namespace != "" {
					where = " in namespace " + namespace
				}
				missing = append(missing, strings.Join(verbs, ", ")+" "+strings.TrimSuffix(full+"."+rule.APIGroups[0], ".")+where)
			}
		}
	}
	return missing, nil
}

// olmDeployments are OLM's own, by name.
var olmDeployments = []string{"catalog-operator", "olm-operator"}

// olmWrites is what OLM's account may do in the whole cluster.
var olmWrites = []rbacv1.PolicyRule{
	{APIGroups: []string{operators}, Resources: []string{"clusterserviceversions/status"}, Verbs: []string{"update"}},
}

// otherOLM finds OLM's own Deployments. Those count that run under an account which a ClusterRoleBinding lets write the
// statuses of all ClusterServiceVersions: in a namespace of his own a tenant may call a Deployment as he likes. Whether
// their Pods are ready does not count: those of a node that failed, or of an image that cannot be pulled now, come
// back.
func (p Preflight) otherOLM(ctx context.Context) (string, error) {
	accounts, err := p.olmAccounts(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	var unread *blindError
	for _, namespace := range slices.Sorted(maps.Keys(accounts)) {
		for _, name := range olmDeployments {
			d, err := olmcore.Get[*appsv1.Deployment](ctx, p.Reader, namespace, name)
			switch {
			case errors.As(reading(err), &unread):
			case err != nil:
				return "", err
			case d != nil && (d.Spec.Replicas == nil || *d.Spec.Replicas > 0) && slices.Contains(accounts[namespace], d.Spec.Template.Spec.ServiceAccountName):
				found = append(found, namespace+"/"+name)
			}
		}
	}
	if len(found) == 0 && unread != nil {
		return "", unread
	}
	if len(found) == 0 {
		return "", nil
	}
	return "an OLM runs in this cluster, and would undo what is written: Deployment " + strings.Join(found, ", ") +
		": scale it to 0 replicas (and what keeps it from staying so), or run the controllers elsewhere", nil
}

// olmAccounts returns the ServiceAccounts that may do what OLM does in the whole cluster, by namespace.
func (p Preflight) olmAccounts(ctx context.Context) (map[string][]string, error) {
	bindings, err := olmcore.List[*rbacv1.ClusterRoleBinding](ctx, p.Reader, "", nil)
	if err != nil {
		return nil, reading(err)
	}
	roles, err := olmcore.List[*rbacv1.ClusterRole](ctx, p.Reader, "", nil)
	if err != nil {
		return nil, reading(err)
	}
	writes := map[string]bool{}
	for _, role := range roles {
		writes[role.Name], _ = rbacvalidation.Covers(role.Rules, olmWrites)
	}
	accounts := map[string][]string{}
	for _, b := range bindings {
		for _, s := range b.Subjects {
			account := (types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
			if writes[b.RoleRef.Name] && s.Kind == rbacv1.ServiceAccountKind {
				accounts[account.Namespace] = append(accounts[account.Namespace], account.Name)
			}
		}
	}
	return accounts, nil
}
