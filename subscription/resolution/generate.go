// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// AnnotationRequiredBy is an annotation of generated Subscriptions. Its value lists the operators that need the
// dependency, separated by commas. It is informational only.
const AnnotationRequiredBy = "olm.required-by"

// generate returns the Subscription for an operator that no Subscription follows. taken are the names that there are.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, ResolveSteps.
// Differs: names are always valid and free.
func generate(p *service, op *olmcore.Operator, taken map[string]bool) *v1alpha1.Subscription {
	raw := strings.Join([]string{op.Package, op.Channel, op.Catalog.Name, op.Catalog.Namespace}, "-")
	name := generatedName(raw, 0)
	if taken[name] {
		p.Report(olmcore.Info, model.ReasonNameCollision, p.SubscriptionRef(name), "",
			"the name is taken; the Subscription for %s gets a longer one", op.Name)
	}
	for try := 1; taken[name]; try++ {
		name = generatedName(raw, try)
	}
	taken[name] = true
	s := &v1alpha1.Subscription{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.SubscriptionKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.In.Namespace, Name: name},
		Spec: &v1alpha1.SubscriptionSpec{
			CatalogSource: op.Catalog.Name, CatalogSourceNamespace: op.Catalog.Namespace,
			Package: op.Package, Channel: op.Channel, StartingCSV: op.Name,
			InstallPlanApproval: v1alpha1.ApprovalAutomatic,
		},
	}
	if len(op.RequiredBy) > 0 {
		s.Annotations = map[string]string{AnnotationRequiredBy: strings.Join(op.RequiredBy, ",")}
	}
	return s
}

// generatedName makes a valid object name of a text, with a hash of the text at the end where it had to change or the
// plain name is taken. Each try gives another name.
func generatedName(raw string, try int) string {
	const hashLength = 8
	if try == 0 && len(validation.IsDNS1123Subdomain(raw)) == 0 {
		return raw
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, raw)
	name = strings.TrimLeft(name, "-.")
	name = name[:min(len(name), validation.DNS1123SubdomainMaxLength-hashLength-1)]
	sum := sha256.Sum256([]byte(raw + strings.Repeat("/", max(0, try-1))))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	// A dot must not stand beside another dot or a dash.
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' })
	for i := range parts {
		parts[i] = strings.Trim(parts[i], "-")
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return hash
	}
	return strings.Join(parts, ".") + "-" + hash
}

// checkInstallModes warns when a bundle's summary says that it cannot run as the OperatorGroup wants. It never changes
// the choice.
func checkInstallModes(p *service, n *model.Node) {
	i := slices.IndexFunc(n.Entry.Properties, func(property olmcore.Property) bool { return property.Type == model.PropertyCSVMetadata })
	if i < 0 {
		return
	}
	var summary struct{ InstallModes []v1alpha1.InstallMode }
	if json.Unmarshal(n.Entry.Properties[i].Value, &summary) != nil || len(summary.InstallModes) == 0 {
		return
	}
	mode := wantedMode(p.Group, p.In.Namespace)
	if mode != "" && !slices.Contains(summary.InstallModes, v1alpha1.InstallMode{Type: mode, Supported: true}) {
		p.Report(olmcore.Warning, model.ReasonInstallModeUnsupported, p.CSVRef(n.Entry.Name), "",
			"%s does not support install mode %s, which OperatorGroup %s asks for", n.Entry.Name, mode, p.Group.Name)
	}
}

// wantedMode is the install mode that an OperatorGroup's targets amount to, "" when it is not known yet.
func wantedMode(group *operatorsv1.OperatorGroup, namespace string) v1alpha1.InstallModeType {
	targets := group.Status.Namespaces
	switch {
	case len(targets) == 0:
		return ""
	case slices.Contains(targets, ""):
		return v1alpha1.InstallModeTypeAllNamespaces
	case len(targets) > 1:
		return v1alpha1.InstallModeTypeMultiNamespace
	case targets[0] == namespace:
		return v1alpha1.InstallModeTypeOwnNamespace
	}
	return v1alpha1.InstallModeTypeSingleNamespace
}
