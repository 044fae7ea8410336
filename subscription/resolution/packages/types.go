// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of a PackageManifest.
var GroupVersion = schema.GroupVersion{Group: "packages.operators.coreos.com", Version: "v1"}

// Labels of a PackageManifest, beside those of its CatalogSource and those that begin with LabelArch and LabelOS.
const (
	LabelCatalog          = "catalog"
	LabelCatalogNamespace = "catalog-namespace"
	LabelProvider         = "provider"
	LabelProviderURL      = "provider-url"
	// LabelArch and LabelOS begin the labels by which a ClusterServiceVersion says where its operator runs.
	LabelArch = "operatorframework.io/arch."
	LabelOS   = "operatorframework.io/os."
)

// PackageManifest is one package of one catalog. It is named as the package; its namespace is that of the catalog, or
// of whoever looks at it.
type PackageManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PackageManifestSpec   `json:"spec,omitempty"`
	Status            PackageManifestStatus `json:"status,omitempty"`
}

// PackageManifestSpec is empty: there is nothing to wish for.
type PackageManifestSpec struct{}

// PackageManifestStatus is what the catalog says of a package.
type PackageManifestStatus struct {
	CatalogSource            string `json:"catalogSource"`
	CatalogSourceDisplayName string `json:"catalogSourceDisplayName"`
	CatalogSourcePublisher   string `json:"catalogSourcePublisher"`
	CatalogSourceNamespace   string `json:"catalogSourceNamespace"`
	// Provider is that of the default channel's head.
	Provider    v1alpha1.AppLink `json:"provider,omitempty"`
	PackageName string           `json:"packageName"`
	Deprecation *Deprecation     `json:"deprecation,omitempty"`
	// Channels are sorted by name. Each has a head: channels from which nothing can be installed are left out.
	Channels []PackageChannel `json:"channels"`
	// DefaultChannel is the name of one of Channels.
	DefaultChannel string `json:"defaultChannel"`
}

// PackageChannel is one channel of a package.
type PackageChannel struct {
	Name string `json:"name"`
	// CurrentCSV is the name of the channel's head.
	CurrentCSV string `json:"currentCSV"`
	// CurrentCSVDesc describes the head. Channels with the same head share it.
	CurrentCSVDesc *CSVDescription `json:"currentCSVDesc,omitempty"`
	Deprecation    *Deprecation    `json:"deprecation,omitempty"`
	// Entries are all versions in the channel, the newest first.
	Entries []ChannelEntry `json:"entries"`
}

// ChannelEntry is one version in a channel.
type ChannelEntry struct {
	Name        string       `json:"name"`
	Version     string       `json:"version,omitempty"`
	Deprecation *Deprecation `json:"deprecation,omitempty"`
}

// Deprecation says that a package, a channel or a version should not be used any more, and why.
type Deprecation struct {
	Message string `json:"message,omitempty"`
}

// CSVDescription is what people want to know of a ClusterServiceVersion before they install it.
type CSVDescription struct {
	DisplayName string `json:"displayName,omitempty"`
	// Icon has one icon at most: of one of MediaTypes, with valid base64.
	Icon            []v1alpha1.Icon       `json:"icon,omitempty"`
	Version         string                `json:"version,omitempty"`
	Provider        v1alpha1.AppLink      `json:"provider,omitempty"`
	Annotations     map[string]string     `json:"annotations,omitempty"`
	Keywords        []string              `json:"keywords,omitempty"`
	Links           []v1alpha1.AppLink    `json:"links,omitempty"`
	Maintainers     []v1alpha1.Maintainer `json:"maintainers,omitempty"`
	Maturity        string                `json:"maturity,omitempty"`
	LongDescription string                `json:"description,omitempty"`
	// InstallModes say into which OperatorGroups the version fits.
	InstallModes              []v1alpha1.InstallMode             `json:"installModes"`
	CustomResourceDefinitions v1alpha1.CustomResourceDefinitions `json:"customresourcedefinitions,omitempty"`
	APIServiceDefinitions     v1alpha1.APIServiceDefinitions     `json:"apiservicedefinitions,omitempty"`
	NativeAPIs                []metav1.GroupVersionKind          `json:"nativeApis,omitempty"`
	MinKubeVersion            string                             `json:"minKubeVersion,omitempty"`
	RelatedImages             []string                           `json:"relatedImages,omitempty"`
}

// PackageManifestList is a list of PackageManifests.
type PackageManifestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PackageManifest `json:"items"`
}

// Head returns the channel that is installed from unless a Subscription names another; nil when there is none.
func (m *PackageManifest) Head() *PackageChannel {
	for i := range m.Status.Channels {
		if m.Status.Channels[i].Name == m.Status.DefaultChannel {
			return &m.Status.Channels[i]
		}
	}
	return nil
}

// OpenAPIModelName names the type in OpenAPI documents.
func (PackageManifest) OpenAPIModelName() string {
	return "com.coreos.operators.packages.v1.PackageManifest"
}

// OpenAPIModelName names the type in OpenAPI documents.
func (PackageManifestList) OpenAPIModelName() string {
	return "com.coreos.operators.packages.v1.PackageManifestList"
}
