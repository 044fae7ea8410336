// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// defaultPath is the path of a conversion webhook whose description contains none.
const defaultPath = "/"

// converts reports whether all CRDs of a description have a conversion webhook. A CRD that calls this CSV must also
// trust it, and no CRD may call the previous version.
func (f *facts) converts(w *description) bool {
	return !slices.ContainsFunc(w.ConversionCRDs, func(name string) bool {
		crd := f.crds[name]
		config := clientConfig(crd)
		return config == nil || len(config.CABundle) == 0 ||
			f.calledBy(config) && !f.source.trusts(config.CABundle, f.bundle(config.Service.Name, config.CABundle)) ||
			f.callsPredecessor(crd)
	})
}

// callsPredecessor reports whether a CRD of this CSV still calls the Service of the previous version, which is deleted
// with that version. If olmcore/converted-by names no version, any other Service of the namespace is treated as that of
// the previous version while the CSV is Installing. Once the CSV is Succeeded, a user may have chosen that Service.
func (f *facts) callsPredecessor(crd *apiextensionsv1.CustomResourceDefinition) bool {
	config := clientConfig(crd)
	if config == nil || config.Service == nil || config.Service.Namespace != f.source.CSV.Namespace ||
		f.calledBy(config) || f.source.notOurs(crd) != "" {
		return false
	}
	converter := model.Converter(crd)
	return converter.Namespace == f.source.CSV.Namespace && converter.Name != f.source.CSV.Name ||
		f.source.CSV.Status.Phase == v1alpha1.CSVPhaseInstalling
}

// notOurs returns why the conversion of a CRD may not be changed for this CSV. It is empty in these cases:
//   - The CRD was installed with this CSV, and not with one of another namespace too.
//   - olmcore/converted-by allows the change.
//   - The OperatorGroup names no account, and the CRD was installed only with other versions of the namespace. The next
//     version may have installed the CRD already, and waits for this version.
//
// The conversion may not be changed if the CRD was installed with the previous version, and the InstallPlan of this
// version has not written it yet. A user who can write a CSV can name any CRD. So a CRD without a record, for example
// one that Helm installed, keeps its conversion.
//
// Differs: OLM changes the conversion of every CRD that a CSV lists as owned.
func (s Clients) notOurs(crd *apiextensionsv1.CustomResourceDefinition) string {
	config := clientConfig(crd)
	others := model.InstalledAlongside(crd)
	isNext := func(key types.NamespacedName) bool {
		return key.Namespace == s.CSV.Namespace && key.Name != s.CSV.Spec.Replaces && !s.isPrescribed()
	}
	owners := slices.DeleteFunc(slices.Clone(others), isNext)
	coOwner := coOwnerOf(s, crd)
	switch {
	case model.IsInstalledWith(s.CSV, crd) && coOwner.Name != "" && !isAllowed(s, crd):
		return fmt.Sprintf("CRD %s was also installed with ClusterServiceVersion %s; "+
			"to allow the conversion, a cluster administrator can run: %s",
			crd.Name, coOwner, allowConversionCommand(s.CSV, crd.Name))
	case model.IsInstalledWith(s.CSV, crd):
		return ""
	case len(owners) > 0:
		first := slices.MinFunc(owners, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
		return fmt.Sprintf("CRD %s was installed with ClusterServiceVersion %s, and no InstallPlan has installed it for %s yet",
			crd.Name, first, s.CSV.Name)
	case isAllowed(s, crd):
		return ""
	case len(others) == 0:
		return fmt.Sprintf("no InstallPlan recorded CRD %s, so its conversion is not changed; "+
			"to allow it, a cluster administrator can run: %s", crd.Name, allowConversionCommand(s.CSV, crd.Name))
	case config != nil && (config.Service == nil || config.Service.Namespace != s.CSV.Namespace):
		return fmt.Sprintf("CRD %s is not converted by an operator of namespace %s", crd.Name, s.CSV.Namespace)
	}
	return ""
}

// coOwnerOf returns a CSV of another namespace that a CRD belongs to as well, or the zero value if there is none. A
// conversion webhook reads and rewrites the custom resources of all namespaces. An InstallPlan also records its CSV on
// an identical CRD of another operator. So the record alone does not prove that this CSV may convert. If the CRD
// already calls a Service of this namespace, coOwnerOf returns the zero value.
func coOwnerOf(s Clients, crd *apiextensionsv1.CustomResourceDefinition) types.NamespacedName {
	config := clientConfig(crd)
	if config != nil && config.Service != nil && config.Service.Namespace == s.CSV.Namespace {
		return types.NamespacedName{}
	}
	return model.ConflictingOwner(crd, s.CSV.Namespace, s.isPrescribed())
}

// allowConversionCommand returns the command with which a cluster administrator lets a CSV change the conversion of a
// CRD.
func allowConversionCommand(c *model.CSV, crd string) string {
	return fmt.Sprintf("kubectl annotate crd %s %s=%s/%s --overwrite", crd, model.AnnotationConvertedBy, c.Namespace, c.Name)
}

// isAllowed reports whether olmcore/converted-by on a CRD lets this CSV change its conversion. The annotation must name
// the CSV or the version that the CSV replaces. If the OperatorGroup names no account, it may name any version of the
// namespace, because versions of an upgrade chain can be skipped. Only a cluster administrator, or the controller when
// it changes the conversion, writes the annotation. Tenants cannot.
func isAllowed(s Clients, crd *apiextensionsv1.CustomResourceDefinition) bool {
	by := model.Converter(crd)
	return by.Name != "" && by.Namespace == s.CSV.Namespace &&
		(by.Name == s.CSV.Name || by.Name == s.CSV.Spec.Replaces || !s.isPrescribed())
}

// isKept reports whether a CRD without a record already calls this CSV's operator. Its conversion stays as it is,
// except for the caBundle.
func isKept(f *facts, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return len(model.InstalledAlongside(crd)) == 0 && f.calledBy(clientConfig(crd))
}

// isPrescribed reports whether the OperatorGroup names the ServiceAccount that writes.
func (s Clients) isPrescribed() bool {
	return s.Account != nil || s.Group != nil && s.Group.Spec.ServiceAccountName != ""
}

// mayFollow reports whether the caBundle of a CRD that calls the CSV's operator may be updated. The caBundle may be
// updated if the conversion may be changed, or if the CRD has no record. If the OperatorGroup names no account, the
// caBundle may also be updated if a version of the namespace is recorded. Such a record is an installed-alongside
// annotation or olmcore/converted-by. Records of other namespaces are ignored. Otherwise they could prevent the API
// server from trusting this operator.
func mayFollow(f *facts, crd *apiextensionsv1.CustomResourceDefinition) bool {
	isHere := func(key types.NamespacedName) bool { return key.Namespace == f.source.CSV.Namespace }
	return f.source.notOurs(crd) == "" || isKept(f, crd) || !f.source.isPrescribed() && slices.ContainsFunc(model.Converters(crd), isHere)
}

// conversions returns the writes that set the conversions of CRDs. If one of them is not possible, it returns a problem
// and no writes.
//
// Source: operator-lifecycle-manager pkg/controller/install/webhook.go.
// Differs: OLM converts the first CRD before it checks the second.
func (f *facts) conversions() (actions []olmcore.Action, problem string) {
	seen := sets.New[string]()
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		w := &f.source.CSV.Spec.WebhookDefinitions[i]
		if !isConversion(w) {
			continue
		}
		for _, name := range w.ConversionCRDs {
			if seen.Has(name) {
				continue
			}
			seen.Insert(name)
			a, problem := f.conversion(f.crds[name], name, w)
			if problem != "" {
				return nil, problem
			}
			if a != nil {
				actions = append(actions, a)
			}
		}
	}
	return actions, ""
}

// conversion returns the update that makes a CRD convert as described, or the problem that prevents it. Both are empty
// if nothing is left to do.
func (f *facts) conversion(crd *apiextensionsv1.CustomResourceDefinition, name string, w *description) (olmcore.Action, string) {
	switch {
	case crd == nil:
		return nil, fmt.Sprintf("CRD %s does not exist", name)
	case crd.DeletionTimestamp != nil:
		return nil, fmt.Sprintf("CRD %s is being deleted", name)
	case crd.Spec.PreserveUnknownFields:
		return nil, "crd.Spec.PreserveUnknownFields must be false to let API Server call webhook to do the conversion"
	}
	want := f.desiredConversion(w, conversionBundle(f, crd, w))
	if want.Webhook.ClientConfig.CABundle == nil {
		return nil, "" // must not be set yet
	}
	same := semantic.DeepEqual(defaulted(crd.Spec.Conversion), want)
	isMarked := crd.Annotations[model.AnnotationConvertedBy] != ""
	problem := f.source.notOurs(crd)
	switch {
	case same && (!isMarked || problem != "" || model.IsConverter(f.source.CSV, crd)):
		return nil, ""
	case problem != "" && isKept(f, crd):
		return nil, ""
	case problem != "":
		return nil, problem
	}
	after := crd.DeepCopy()
	if !same {
		after.Spec.Conversion = want
	}
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, model.AnnotationConvertedBy, f.source.CSV.Namespace+"/"+f.source.CSV.Name)
	why := "the conversion of CRD " + name + " does not match its description in ClusterServiceVersion " + f.source.CSV.Name
	return olmcore.UpdateOf(crd, after, olmcore.Cause{Reason: ReasonInstall, Message: why}), ""
}

// conversionBundle returns the caBundle of a CRD if it calls the Deployment of a description. Otherwise it is empty.
func conversionBundle(f *facts, crd *apiextensionsv1.CustomResourceDefinition, w *description) []byte {
	config := clientConfig(crd)
	if f.calledBy(config) && config.Service.Name == ServiceName(w.DeploymentName) {
		return config.CABundle
	}
	return nil
}

func (f *facts) desiredConversion(w *description, have []byte) *apiextensionsv1.CustomResourceConversion {
	path, service := defaultPath, ServiceName(w.DeploymentName)
	if w.WebhookPath != nil {
		path = cmp.Or(*w.WebhookPath, defaultPath)
	}
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{
					Namespace: f.source.CSV.Namespace, Name: service, Path: &path, Port: new(port(w.ContainerPort)),
				},
				CABundle: f.bundle(service, have),
			},
			ConversionReviewVersions: slices.Clone(w.AdmissionReviewVersions),
		},
	}
}

// defaulted returns a copy of a conversion with the defaults of the API server.
func defaulted(have *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
	have = have.DeepCopy()
	if have != nil && have.Webhook != nil && have.Webhook.ClientConfig != nil && have.Webhook.ClientConfig.Service != nil {
		service := have.Webhook.ClientConfig.Service
		setDefault(&service.Port, defaultPort)
		setDefault(&service.Path, defaultPath)
		service.Path = new(cmp.Or(*service.Path, defaultPath))
	}
	return have
}

// IsConverted reports whether the conversion webhook of a CRD calls the Service of a Deployment of the CSV. It includes
// Deployments that no webhook description names.
func IsConverted(c *model.CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil ||
		conversion.Webhook.ClientConfig.Service == nil {
		return false
	}
	service := conversion.Webhook.ClientConfig.Service
	return service.Namespace == c.Namespace &&
		slices.ContainsFunc(c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(d v1alpha1.StrategyDeploymentSpec) bool {
			return service.Name == ServiceName(d.Name)
		})
}

// Unconverted returns a copy of a CRD with the conversion strategy None, and without model.AnnotationConvertedBy.
func Unconverted(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	after := crd.DeepCopy()
	after.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	delete(after.Annotations, model.AnnotationConvertedBy)
	return after
}

// revertedConversions returns the updates that remove the operator from the CRDs that it converts and no longer
// describes. It has no certificate for them, so each read of their custom resources would fail.
//
// Differs: OLM leaves them as they are.
func revertedConversions(f *facts) (actions []olmcore.Action) {
	s := f.source
	described := sets.New[string]()
	for i := range s.CSV.Spec.WebhookDefinitions {
		described.Insert(s.CSV.Spec.WebhookDefinitions[i].ConversionCRDs...)
	}
	for _, crd := range s.CRDs {
		if !described.Has(crd.Name) && crd.DeletionTimestamp == nil && model.IsConverter(s.CSV, crd) && IsConverted(s.CSV, crd) {
			actions = append(actions, olmcore.UpdateOf(crd, Unconverted(crd), olmcore.Cause{
				Reason:  ReasonRemovedFromSpec,
				Message: "ClusterServiceVersion " + s.CSV.Name + " no longer describes the conversion of CRD " + crd.Name,
			}))
		}
	}
	if len(actions) > 0 && problemOf(f) != "" {
		return nil // the spec is invalid
	}
	return actions
}
