2
versicolor2
versicolor2
versicolor2
versicolor2
versicolor2
versicolor2
versicolor2
versicolor2
versicolor2	virginica2	virginica2	virginica2	virginica2	virginica2	virginica