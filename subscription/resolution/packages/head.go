// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Bounds of what is read of one head, and of what is kept of it. The largest ClusterServiceVersion that was published
// has 1.3 MB, 13,000 values and a long description of 5 kB.
const (
	maxHeadBytes = 4 << 20
	maxIconBytes = 1 << 20
	// maxHeadValues bounds the values of a text: decoded, each may take a hundred times its size.
	maxHeadValues = 100_000
	// maxLongDescription and maxHeadKept bound what is kept beside the icon.
	maxLongDescription = 128 << 10
	maxHeadKept        = 2 << 20
)

// mediaTypes returns the media types that icons may have. A browser displays these in an <img> element without running
// scripts in them.
func mediaTypes() []string {
	return []string{"image/svg+xml", "image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"}
}

// description is a CSVDescription, and the labels of the ClusterServiceVersion.
type description struct {
	CSVDescription
	labels map[string]string
}

// summary has the fields of olm.csv.metadata that are called otherwise in a CSVDescription.
type summary struct {
	CSVDescription
	Labels          map[string]string                  `json:"labels"`
	CRDDescriptions v1alpha1.CustomResourceDefinitions `json:"crdDescriptions"`
}

// manifest has the fields of a ClusterServiceVersion that are described. Those of its spec are called as in a
// CSVDescription, but for case.
type manifest struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
		Labels      map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		CSVDescription
		RelatedImages []v1alpha1.RelatedImage `json:"relatedImages"`
		Install       struct {
			Spec struct {
				Deployments []deployment `json:"deployments"`
			} `json:"spec"`
		} `json:"install"`
	} `json:"spec"`
}

// deployment has the images of a Deployment of the install strategy.
type deployment struct {
	Spec struct {
		Template struct {
			Spec struct {
				InitContainers []container `json:"initContainers"`
				Containers     []container `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type container struct {
	Image string `json:"image"`
}

// describe returns what is known of the head of a channel.
func (p *Pending) describe(head *resolution.Bundle) *description {
	path := pathOf(p.Name) + fmt.Sprintf(".bundles[%q]", head.Name)
	out, err := p.read(head, path)
	switch {
	case err != nil:
		p.report(olmcore.Warning, ReasonUnreadableDescription, path, "the description of %s is broken: %v", head.Name, err)
	case out == nil:
		p.report(olmcore.Info, ReasonNotDescribed, path, "the catalog has no description of %s", head.Name)
	}
	out = cmp.Or(out, &description{})
	if len(out.Icon) == 0 && p.Icon != (v1alpha1.Icon{}) {
		out.Icon = []v1alpha1.Icon{p.Icon}
	}
	out.Icon = p.icon(out.Icon, head.Name, path)
	out.LongDescription = cmp.Or(out.LongDescription, p.Description)
	out.Version = cmp.Or(versionOf(head, p.Name), out.Version)
	out.RelatedImages = union(out.RelatedImages, imagesOf(head.RelatedImages, func(i resolution.RelatedImage) string { return i.Image }))
	if out.InstallModes == nil {
		out.InstallModes = []v1alpha1.InstallMode{}
	}
	return p.fit(out, head.Name, path)
}

// fit returns what of a description may be kept.
func (p *Pending) fit(out *description, name, path string) *description {
	if size := len(out.LongDescription); size > maxLongDescription {
		p.report(
			olmcore.Warning,
			ReasonTooLarge,
			path,
			"the long description of %s has %d bytes, and is cut after %d",
			name,
			size,
			maxLongDescription,
		)
		out.LongDescription = model.Cut(out.LongDescription, maxLongDescription)
	}
	short := &description{
		CSVDescription: CSVDescription{Version: model.Cut(out.Version, maxSourceText), InstallModes: []v1alpha1.InstallMode{}},
	}
	if size := sizeOf(out) - sizeOf(out.Icon); size > maxHeadKept {
		p.report(
			olmcore.Warning,
			ReasonTooLarge,
			path,
			"%s is not described: that would take %d bytes of memory, more than %d",
			name,
			size,
			maxHeadKept,
		)
		out = short
	}
	if !p.take(sizeOf(out)) {
		p.report(
			olmcore.Warning,
			ReasonTooLarge,
			path,
			"%s is not described: what is shown of the catalog has %d bytes of memory, and takes them",
			name,
			p.of.most(),
		)
		out = short
		p.force(sizeOf(out))
	}
	return out
}

// read returns what a bundle's ClusterServiceVersion says, or else its summary in the catalog; nil when there is
// neither. With an error it returns what could be read.
func (p *Pending) read(b *resolution.Bundle, path string) (found *description, err error) {
	for _, source := range sources(b) {
		if len(source.text) > maxHeadBytes {
			p.report(
				olmcore.Warning,
				ReasonTooLarge,
				path,
				"a description of %s has %d bytes, more than %d, and is not read",
				b.Name,
				len(source.text),
				maxHeadBytes,
			)
			continue
		}
		if values := valuesOf(source.text); values > maxHeadValues {
			p.report(olmcore.Warning, ReasonTooLarge, path, "a description of %s has more than %d values, and is not read", b.Name, maxHeadValues)
			continue
		}
		out, problem := source.decode(source.text)
		err = errors.Join(err, problem)
		if out != nil {
			return out, err
		}
	}
	return nil, err
}

// valuesOf counts the values of a JSON text, roughly, and no further than there may be.
func valuesOf(text []byte) (count int) {
	quoted := false
	for i := 0; i < len(text) && count <= maxHeadValues; i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == ',' || c == '[' || c == '{'):
			count++
		}
	}
	return count
}

// source is a text that may describe a bundle: decode returns nil when it does not.
type source struct {
	text   []byte
	decode func([]byte) (*description, error)
}

// sources returns where a bundle's description may be, the best first.
func sources(b *resolution.Bundle) (list []source) {
	for _, o := range b.Objects {
		if olmcore.GVKOf(o).Kind != v1alpha1.ClusterServiceVersionKind {
			continue
		}
		if text, err := json.Marshal(o); err == nil {
			list = append(list, source{text, decodeManifest})
		}
	}
	var summaries []source
	for _, p := range b.Properties {
		switch p.Type {
		case resolution.PropertyBundleObject:
			var value struct{ Data []byte }
			// Manifests are JSON, and most are of other kinds.
			if json.Unmarshal(p.Value, &value) == nil && bytes.Contains(value.Data, []byte(v1alpha1.ClusterServiceVersionKind)) {
				list = append(list, source{value.Data, decodeManifest})
			}
		case resolution.PropertyCSVMetadata:
			summaries = append(summaries, source{p.Value, decodeSummary})
		}
	}
	return append(list, summaries...)
}

func decodeManifest(text []byte) (*description, error) {
	var m manifest
	err := decode(text, &m)
	if m.Kind != v1alpha1.ClusterServiceVersionKind {
		return nil, err
	}
	out := &description{CSVDescription: m.Spec.CSVDescription, labels: m.Metadata.Labels}
	out.Annotations = m.Metadata.Annotations
	out.RelatedImages = imagesOf(m.Spec.RelatedImages, func(i v1alpha1.RelatedImage) string { return i.Image })
	for _, d := range m.Spec.Install.Spec.Deployments {
		pod := d.Spec.Template.Spec
		containers := slices.Concat(pod.InitContainers, pod.Containers)
		out.RelatedImages = union(out.RelatedImages, imagesOf(containers, func(c container) string { return c.Image }))
	}
	return out, err
}

func decodeSummary(text []byte) (*description, error) {
	var s summary
	err := decode(text, &s)
	out := &description{CSVDescription: s.CSVDescription, labels: s.Labels}
	out.CustomResourceDefinitions = s.CRDDescriptions
	return out, err
}

// decode decodes what it can: a field of another type is left out, and the error names it.
func decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		field := strings.ReplaceAll(wrong.Field, "CSVDescription.", "")
		return fmt.Errorf("%s may not be a JSON %s", cmp.Or(field, "it"), wrong.Value)
	}
	return err
}

// icon returns the first icon if it can be shown.
func (p *Pending) icon(icons []v1alpha1.Icon, name, path string) []v1alpha1.Icon {
	if len(icons) == 0 {
		return nil
	}
	icon := icons[0]
	switch {
	case !slices.Contains(mediaTypes(), icon.MediaType):
		p.report(
			olmcore.Warning,
			ReasonUnusableIcon,
			path,
			"the icon of %s has the media type %.100q, which is not shown; use one of %s",
			name,
			icon.MediaType,
			strings.Join(mediaTypes(), ", "),
		)
	case len(icon.Data) > maxIconBytes:
		p.report(olmcore.Warning, ReasonTooLarge, path, "the icon of %s has %d bytes, more than %d", name, len(icon.Data), maxIconBytes)
	case !decodable(icon.Data):
		p.report(olmcore.Warning, ReasonUnusableIcon, path, "the icon of %s is not valid base64", name)
	default:
		return []v1alpha1.Icon{icon}
	}
	return nil
}

func decodable(text string) bool {
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(data) > 0
}

// versionOf returns the version that a bundle's olm.package property has, as written.
func versionOf(b *resolution.Bundle, name string) string {
	for _, p := range b.Properties {
		var value struct{ PackageName, Version string }
		if p.Type == resolution.PropertyPackage && json.Unmarshal(p.Value, &value) == nil && value.PackageName == name {
			return value.Version
		}
	}
	return ""
}

// imagesOf returns the images of a list, each once, sorted.
func imagesOf[T any](list []T, image func(T) string) (images []string) {
	for _, i := range list {
		if name := image(i); name != "" {
			images = append(images, name)
		}
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// union returns the images of two lists, each once, sorted.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
